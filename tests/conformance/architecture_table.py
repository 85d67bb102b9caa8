"""Architectures of transformers as small random models: class, configuration, inputs, and two sets of sizes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Shape = tuple[int | str, ...]


@dataclass(frozen=True)
class Input:
    """An input of a model: dims are numbers or names of sizes; `kind` says what it holds."""

    kind: str
    shape: Shape


@dataclass(frozen=True)
class Architecture:
    """One model: its transformers class, its configuration, and what it is run on.

    `example` is what it is exported with, `other` the sizes that it is run with besides. `outputs` names the fields
    that are compared; all tensors when empty. `eager` asks for attention without torch's fused function.
    """

    name: str
    model: str
    config: Mapping[str, Any]
    inputs: Mapping[str, Input]
    example: Mapping[str, int]
    other: Mapping[str, int]
    outputs: tuple[str, ...] = ()
    eager: bool = False
    calls: Mapping[str, Any] = field(default_factory=dict[str, Any])


IDS, MASK, SEGMENTS = "ids", "mask", "segments"
TEXT: Mapping[str, Input] = {
    "input_ids": Input(IDS, ("batch", "seq")),
    "attention_mask": Input(MASK, ("batch", "seq")),
}
CAUSAL: Mapping[str, Input] = TEXT
ENCODER_DECODER: Mapping[str, Input] = {**TEXT, "decoder_input_ids": Input(IDS, ("batch", "target"))}
TEXT_SIZES: tuple[Mapping[str, int], Mapping[str, int]] = ({"batch": 2, "seq": 10}, {"batch": 3, "seq": 17})
FIXED: Mapping[str, Input] = {"input_ids": Input(IDS, ("batch", 12))}
SMALL: Mapping[str, Any] = {
    "vocab_size": 99,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
GROUPED: Mapping[str, Any] = {
    **SMALL,
    "num_key_value_heads": 2,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
NO_CACHE: Mapping[str, Any] = {"use_cache": False}


def _text(name: str, model: str, config: Mapping[str, Any], **more: Any) -> Architecture:
    return Architecture(name, model, {**SMALL, **config}, TEXT, *TEXT_SIZES, **more)


def _causal(name: str, model: str, config: Mapping[str, Any], **more: Any) -> Architecture:
    return Architecture(name, model, config, CAUSAL, *TEXT_SIZES, outputs=("logits",), calls=NO_CACHE, **more)


def _seq2seq(name: str, model: str, config: Mapping[str, Any]) -> Architecture:
    sizes = ({"batch": 2, "seq": 10, "target": 7}, {"batch": 3, "seq": 13, "target": 4})
    return Architecture(name, model, config, ENCODER_DECODER, *sizes, outputs=("logits",), calls=NO_CACHE)


def _image(name: str, model: str, config: Mapping[str, Any], size: int = 32, **more: Any) -> Architecture:
    """Images of one size, in batches of any."""
    pixels = {"pixel_values": Input("float", ("batch", 3, size, size))}
    return Architecture(name, model, config, pixels, {"batch": 2}, {"batch": 5}, **more)


def _plane(name: str, model: str, config: Mapping[str, Any], **more: Any) -> Architecture:
    """Images of any size."""
    pixels = {"pixel_values": Input("float", ("batch", 3, "height", "width"))}
    sizes = ({"batch": 2, "height": 64, "width": 96}, {"batch": 3, "height": 96, "width": 64})
    return Architecture(name, model, config, pixels, *sizes, **more)


def _sound(name: str, model: str, config: Mapping[str, Any]) -> Architecture:
    sound = {"input_values": Input("float", ("batch", "samples"))}
    return Architecture(name, model, config, sound, {"batch": 2, "samples": 800}, {"batch": 3, "samples": 1203})


_BART: Mapping[str, Any] = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
_T5: Mapping[str, Any] = {"vocab_size": 99, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
_WAV: Mapping[str, Any] = {
    **{k: SMALL[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")},
    "conv_dim": (16, 16, 16),
    "conv_kernel": (10, 3, 3),
    "conv_stride": (5, 2, 2),
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "num_feat_extract_layers": 3,
}
_VIT: Mapping[str, Any] = {
    **{k: SMALL[k] for k in ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size")},
    "image_size": 32,
    "patch_size": 8,
}
_STAGES: Mapping[str, Any] = {"depths": [1, 1, 2, 1], "hidden_sizes": [8, 16, 24, 32]}

ENCODERS = (
    _text("bert", "BertModel", {}),
    _text("roberta", "RobertaModel", {}),
    _text("distilbert", "DistilBertModel", {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    _text("albert", "AlbertModel", {"embedding_size": 16}),
    _text("electra", "ElectraModel", {"embedding_size": 16}),
    _text("deberta-v2", "DebertaV2Model", {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}),
    _text("mpnet", "MPNetModel", {}),
    _text("camembert", "CamembertModel", {}),
    _text("xlm-roberta", "XLMRobertaModel", {}),
    _text("roformer", "RoFormerModel", {"embedding_size": 32}),
    _text("longformer", "LongformerModel", {"attention_window": 4}),
    _text("big-bird", "BigBirdModel", {"attention_type": "original_full"}),
    Architecture("funnel", "FunnelModel", {"vocab_size": 99, "block_sizes": [1, 1], "d_model": 32, "n_head": 4,
                                           "d_head": 8, "d_inner": 48, "num_decoder_layers": 1}, TEXT, *TEXT_SIZES),
    Architecture("xlnet", "XLNetModel", {"vocab_size": 99, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
                 TEXT, *TEXT_SIZES, calls={"use_mems": False}),
    _text("squeezebert", "SqueezeBertModel", {"embedding_size": 32}),
    _text("mobilebert", "MobileBertModel", {"embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16}),
    _text("convbert", "ConvBertModel", {"embedding_size": 32, "conv_kernel_size": 3}),
    _text("modernbert", "ModernBertModel", {"pad_token_id": 0, "local_attention": 8}),
    _text("fnet", "FNetModel", {}, outputs=("last_hidden_state",)),
    _text("nystromformer", "NystromformerModel", {"num_landmarks": 64, "segment_means_seq_len": 64}),
    Architecture("layoutlm", "LayoutLMModel", {**SMALL, "max_2d_position_embeddings": 64},
                 {**TEXT, "bbox": Input("boxes", ("batch", "seq", 4))}, *TEXT_SIZES),
    Architecture("perceiver", "PerceiverModel",
                 {"d_model": 32, "num_latents": 8, "d_latents": 32, "num_blocks": 1, "num_self_attends_per_block": 2,
                  "num_self_attention_heads": 4, "num_cross_attention_heads": 4},
                 {"inputs": Input("float", ("batch", "seq", 32)), "attention_mask": Input(MASK, ("batch", "seq"))},
                 *TEXT_SIZES),
    _text("clip-text", "CLIPTextModel", {"eos_token_id": 98}),
    _text("siglip-text", "SiglipTextModel", {"projection_size": 32}),
    _text("blip-text", "BlipTextModel", {"encoder_hidden_size": 32}, calls=NO_CACHE),
)  # fmt: skip

DECODERS = (
    _causal("gpt2", "GPT2LMHeadModel", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    _causal("gpt-neo", "GPTNeoForCausalLM", {"vocab_size": 99, "hidden_size": 32, "num_layers": 2, "num_heads": 4,
                                             "attention_types": [[["global", "local"], 1]], "window_size": 4,
                                             "max_position_embeddings": 64}),
    _causal("gpt-neox", "GPTNeoXForCausalLM", SMALL),
    _causal("gpt-j", "GPTJForCausalLM", {"vocab_size": 99, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4,
                                         "n_positions": 64}),
    _causal("opt", "OPTForCausalLM", {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32}),
    _causal("bloom", "BloomForCausalLM", {"vocab_size": 99, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    _causal("llama", "LlamaForCausalLM", GROUPED),
    _causal("mistral", "MistralForCausalLM", {**GROUPED, "sliding_window": 6}),
    _causal("mixtral", "MixtralForCausalLM", {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2}),
    _causal("qwen2", "Qwen2ForCausalLM", GROUPED),
    _causal("qwen3", "Qwen3ForCausalLM", {**GROUPED, "head_dim": 8}),
    _causal("gemma", "GemmaForCausalLM", {**GROUPED, "head_dim": 8}),
    _causal("gemma2", "Gemma2ForCausalLM", {**GROUPED, "head_dim": 8, "sliding_window": 6, "query_pre_attn_scalar": 8}),
    _causal("phi", "PhiForCausalLM", GROUPED),
    _causal("phi3", "Phi3ForCausalLM", GROUPED),
    _causal("falcon", "FalconForCausalLM", {**SMALL, "alibi": False, "new_decoder_architecture": False}),
    _causal("stablelm", "StableLmForCausalLM", GROUPED),
    _causal("olmo2", "Olmo2ForCausalLM", GROUPED),
    _causal("starcoder2", "Starcoder2ForCausalLM", GROUPED),
    _causal("cohere", "CohereForCausalLM", GROUPED),
    _causal("mpt", "MptForCausalLM", {"vocab_size": 99, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    Architecture("mamba", "MambaForCausalLM",
                 {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
                 FIXED, {"batch": 2}, {"batch": 3}, outputs=("logits",), calls=NO_CACHE),
    Architecture("rwkv", "RwkvForCausalLM",
                 {"vocab_size": 99, "hidden_size": 32, "num_hidden_layers": 2, "context_length": 64},
                 FIXED, {"batch": 2}, {"batch": 3}, outputs=("logits",), calls=NO_CACHE),
)  # fmt: skip

SEQ2SEQ = (
    _seq2seq("t5", "T5ForConditionalGeneration", {**_T5, "decoder_start_token_id": 0}),
    _seq2seq("mt5", "MT5ForConditionalGeneration", {**_T5, "decoder_start_token_id": 0}),
    _seq2seq("bart", "BartForConditionalGeneration", _BART),
    _seq2seq("mbart", "MBartForConditionalGeneration", _BART),
    _seq2seq("pegasus", "PegasusForConditionalGeneration", _BART),
    _seq2seq("marian", "MarianMTModel", {**_BART, "decoder_start_token_id": 3}),
    _seq2seq("m2m-100", "M2M100ForConditionalGeneration", _BART),
    Architecture("whisper", "WhisperForConditionalGeneration",
                 {**_BART, "num_mel_bins": 8, "max_source_positions": 20, "max_target_positions": 32,
                  "decoder_start_token_id": 3, "suppress_tokens": None, "begin_suppress_tokens": None},
                 {"input_features": Input("float", ("batch", 8, 40)),
                  "decoder_input_ids": Input(IDS, ("batch", "target"))},
                 {"batch": 2, "target": 7}, {"batch": 3, "target": 11}, outputs=("logits",), calls=NO_CACHE),
)  # fmt: skip

SOUND = (
    _sound("wav2vec2", "Wav2Vec2Model", _WAV),
    _sound("hubert", "HubertModel", _WAV),
    _sound("wavlm", "WavLMModel", {**_WAV, "num_buckets": 16, "max_bucket_distance": 32}),
    Architecture("ast", "ASTModel", {**{k: v for k, v in _VIT.items() if k != "image_size"}, "max_length": 32,
                                     "num_mel_bins": 16, "frequency_stride": 8, "time_stride": 8},
                 {"input_values": Input("float", ("batch", 32, 16))}, {"batch": 2}, {"batch": 5}),
    Architecture("speecht5-encoder", "SpeechT5ForSpeechToText.speecht5.encoder",
                 {**_WAV, "vocab_size": 99, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48,
                  "decoder_layers": 1, "decoder_attention_heads": 4, "decoder_ffn_dim": 48,
                  "encoder_max_relative_position": 16},
                 {"input_values": Input("float", ("batch", "samples"))},
                 {"batch": 2, "samples": 800}, {"batch": 3, "samples": 1203}),
)  # fmt: skip

VISION = (
    _image("vit", "ViTModel", _VIT),
    _image("deit", "DeiTModel", _VIT),
    _image("beit", "BeitModel", {**_VIT, "use_relative_position_bias": True}),
    _image("swin", "SwinModel", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2],
                                 "num_heads": [2, 4], "window_size": 4}),
    _image("swinv2", "Swinv2Model", {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [2, 2],
                                     "num_heads": [2, 4], "window_size": 4}),
    _image("dinov2", "Dinov2Model", _VIT),
    _image("clip-vision", "CLIPVisionModel", _VIT),
    _image("siglip-vision", "SiglipVisionModel", _VIT),
    _image("yolos", "YolosForObjectDetection", {**_VIT, "image_size": [32, 32], "num_detection_tokens": 5}),
    _image("dpt", "DPTForDepthEstimation", {**_VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
                                            "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16,
                                            "is_hybrid": False}),
    _image("depth-anything", "DepthAnythingForDepthEstimation", {
        "backbone_config": {"model_type": "dinov2", "hidden_size": 32, "num_hidden_layers": 4,
                            "num_attention_heads": 4, "image_size": 28, "patch_size": 7,
                            "out_features": ["stage1", "stage2", "stage3", "stage4"], "reshape_hidden_states": False},
        "patch_size": 7, "reassemble_hidden_size": 32, "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16,
        "head_hidden_size": 8}, size=28),
    _plane("resnet", "ResNetForImageClassification", {**_STAGES, "embedding_size": 8, "layer_type": "basic"}),
    _plane("regnet", "RegNetForImageClassification", {**_STAGES, "embedding_size": 8, "groups_width": 8,
                                                      "hidden_sizes": [8, 16, 24, 32]}),
    _plane("convnext", "ConvNextForImageClassification", _STAGES),
    _plane("convnextv2", "ConvNextV2ForImageClassification", _STAGES),
    _plane("mobilenet-v1", "MobileNetV1ForImageClassification", {"depth_multiplier": 0.25, "min_depth": 8}),
    _plane("mobilenet-v2", "MobileNetV2ForImageClassification", {"depth_multiplier": 0.25, "min_depth": 8}),
    _plane("efficientnet", "EfficientNetForImageClassification", {"width_coefficient": 0.25, "depth_coefficient": 0.3,
                                                                  "hidden_dim": 320}),
    _plane("segformer", "SegformerForSemanticSegmentation", {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 16, 24, 32],
                                                             "num_attention_heads": [1, 2, 3, 4],
                                                             "decoder_hidden_size": 16}),
    _image("mobilevit", "MobileViTForImageClassification", {"image_size": 64, "hidden_sizes": [16, 16, 16],
                                                            "neck_hidden_sizes": [8, 8, 8, 8, 8, 8, 16],
                                                            "num_attention_heads": 2}, size=64),
    _image("poolformer", "PoolFormerForImageClassification", {"hidden_sizes": [8, 8, 16, 16], "depths": [1, 1, 1, 1]},
           size=64),
    _image("levit", "LevitForImageClassification", {"image_size": 64, "hidden_sizes": [16, 24, 32], "depths": [1, 1, 1],
                                                    "num_attention_heads": [2, 3, 4], "key_dim": [8, 8, 8]}, size=64),
    _image("pvt", "PvtForImageClassification", {"image_size": 64, "hidden_sizes": [8, 16, 24, 32],
                                                "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4]}, size=64),
    _image("rt-detr", "RTDetrForObjectDetection", {
        "backbone_config": {"model_type": "rt_detr_resnet", "embedding_size": 8, "hidden_sizes": [8, 16, 24, 32],
                            "depths": [1, 1, 1, 1], "layer_type": "basic",
                            "out_features": ["stage2", "stage3", "stage4"]},
        "encoder_hidden_dim": 32, "encoder_in_channels": [16, 24, 32], "encoder_layers": 1, "encoder_ffn_dim": 48,
        "encoder_attention_heads": 4, "d_model": 32, "num_queries": 6, "decoder_in_channels": [32, 32, 32],
        "decoder_ffn_dim": 48, "decoder_layers": 2, "decoder_attention_heads": 4, "num_denoising": 0,
        "anchor_image_size": None}, size=64, outputs=("logits", "pred_boxes")),
    Architecture("clip", "CLIPModel", {
        "text_config": {**SMALL, "eos_token_id": 98}, "vision_config": dict(_VIT), "projection_dim": 16},
        {**TEXT, "pixel_values": Input("float", ("images", 3, 32, 32))},
        {"batch": 2, "seq": 10, "images": 3}, {"batch": 3, "seq": 13, "images": 2},
        outputs=("logits_per_image", "text_embeds", "image_embeds")),
    Architecture("timesformer", "TimesformerModel", {**_VIT, "num_frames": 2},
                 {"pixel_values": Input("float", ("batch", 2, 3, 32, 32))}, {"batch": 2}, {"batch": 3}),
    Architecture("videomae", "VideoMAEModel", {**_VIT, "num_frames": 4, "tubelet_size": 2},
                 {"pixel_values": Input("float", ("batch", 4, 3, 32, 32))}, {"batch": 2}, {"batch": 3}),
)  # fmt: skip

ARCHITECTURES: tuple[Architecture, ...] = (*ENCODERS, *DECODERS, *SEQ2SEQ, *SOUND, *VISION)


def matching(pattern: str) -> Iterator[Architecture]:
    """The architectures whose names contain one of the comma-separated parts of the pattern."""
    parts = [p for p in pattern.split(",") if p] or [""]
    return (a for a in ARCHITECTURES if any(p in a.name for p in parts))
