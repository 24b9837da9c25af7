"""Makes the stack's services ready before anything moves: topics, buckets and users, compatibility of schemas.

Each program brings one service in line with one file of `compose/`; none knows what the records and the tables hold.
"""
