"""What train.py does: a target writes texts, and an EAGLE3 head and a draft learn from it. Needs torch and safetensors.

Method of the head: EAGLE-3 (Li et al. 2025, arXiv:2503.01840). Three states of the target go in, and the head is
trained on its own output for several guesses in a row ("training-time test"). No data set is needed: the target writes
prompts itself from the opened chat template (Magpie, Xu et al. 2024, arXiv:2406.08464), small templates add prompts to
copy from, and both proposers learn the target's greedy answers. The lab's measured prompts are not used.
"""
