"""Types that a schema lacks: asked of the model, gathered into proposals, and which chunks a new one touches.

prompts      how the model is asked
suggestions  what it said of one chunk, read and kept
asking       many questions, the model's batch kept full
gathering    suggestions of many chunks into proposals
accepting    the proposals of an index, and the schema that comes of accepting some
touching     which stored results a new type could change
bootstrap    a first schema from documents alone
"""
