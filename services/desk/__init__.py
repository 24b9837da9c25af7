"""The running stack from the desk's side: its containers, its published ports, its secrets and tables.

It knows compose and the files under compose/; nothing of what a drill, a test or a benchmark does with the stack.
"""
