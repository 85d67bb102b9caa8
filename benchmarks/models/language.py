"""Language transformers, as PyTorch modules in inference mode."""

from __future__ import annotations

import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    DynamicCache,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
)

from benchmarks.models.weights import perturb_vectors


class Encoder(nn.Module):
    """BERT with its pooler: token ids and attention mask in, hidden states and pooled output out."""

    def __init__(self, model: BertModel):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        out = self.model(input_ids=input_ids, attention_mask=attention_mask)
        return out.last_hidden_state, out.pooler_output


class Prefill(nn.Module):
    """A causal language model over a whole prompt: token ids in, logits of every position out."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor) -> tuple[torch.Tensor]:
        return (self.model(input_ids=input_ids, use_cache=False).logits,)


class Decode(nn.Module):
    """One decoding step: a token and the KV cache in, its logits and the grown cache out.

    The cache is a flat list `key_0, value_0, key_1, ...` of arrays `[batch, heads, past, head_dim]`.
    """

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    def forward(self, input_ids: torch.Tensor, *past: torch.Tensor) -> tuple[torch.Tensor, ...]:
        cache = DynamicCache(list(zip(past[0::2], past[1::2], strict=True)))
        logits = self.model(input_ids=input_ids, past_key_values=cache, use_cache=True).logits
        grown = [state for layer in cache.layers for state in (layer.keys, layer.values)]
        return logits, *grown


def bert() -> nn.Module:
    """BERT-base (12 layers, 110 M parameters), 22 GFLOP at 128 tokens."""
    return perturb_vectors(Encoder(BertModel(BertConfig()))).eval()


def gpt2_prefill() -> nn.Module:
    """GPT-2 small (124 M parameters) over a prompt, 16 GFLOP at 64 tokens."""
    return perturb_vectors(Prefill(GPT2LMHeadModel(GPT2Config()))).eval()


def gpt2_decode() -> nn.Module:
    """GPT-2 small decoding one token with a KV cache."""
    return perturb_vectors(Decode(GPT2LMHeadModel(GPT2Config()))).eval()


def llama() -> nn.Module:
    """A small Llama: RMSNorm, rotary embedding, grouped-query attention, SwiGLU; 7.6 GFLOP at 128 tokens."""
    config = LlamaConfig(
        vocab_size=8000,
        hidden_size=512,
        intermediate_size=1536,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    )
    return perturb_vectors(Prefill(LlamaForCausalLM(config))).eval()
