"""Training a language model on what people prefer, from base model to PPO. Ouyang et al. (2022).

    rewards      rewards of tokens, whitening, the adaptive coefficient of the KL penalty
    advantages   generalised advantage estimation, leave-one-out baseline
    losses       ranking loss of reward models, DPO, clipped losses of PPO, REINFORCE
    measures     what is measured beside a loss
    rankings     objectives on rankings: reward model, DPO
    policies     objectives on the policy's own responses: PPO, REINFORCE

The first three are pure functions of tensors, one for each formula. Sources: Ouyang et al. (2022), Schulman et al.
(2016, 2017), Ziegler et al. (2019), Rafailov et al. (2023), Ahmadian et al. (2024). Responses are padded on the right.
What is needed only with padding on the left is not here: positions that do not count the padding before a prompt.
"""
