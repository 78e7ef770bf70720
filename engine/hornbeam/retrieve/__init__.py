"""From a question to ranked candidates and packed evidence, without a language model."""
