"""Tasks on prompts with responses: supervised fine-tuning, reward model, DPO, PPO."""
