"""How much of the program one request enters, on each of its main ways."""
