"""Events told to people and programs: read by cursor, or delivered to who subscribes.

What happened is derived at the commit (`domain.happened`); here it is read, waited for, delivered
and given up, and never made up. What nobody's change means, a threshold crossed, is looked for in
`thresholds`. No URL is reached from here: who sends is handed in.
"""
