"""What the case studies are made of: games, speech, sentences, pictures, and their training."""
