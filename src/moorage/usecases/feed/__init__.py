"""Events told to people and programs: read by cursor, or delivered to who subscribes.

What happened is derived at the commit (`domain.happened`); here it is read, waited for, delivered
and given up. What nobody's change means, a threshold crossed, is looked for in `thresholds`.
"""
