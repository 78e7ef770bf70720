"""What runs cost: money, tokens, time, energy; and where they must end."""
