"""Models with random weights and a real tokenizer: small ones of every architecture, and known ones at real size.

Tests, `python -m benchmarks.precision` and `python -m benchmarks.encode_speed --models` make their folders. Nothing is
fetched.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from indexer.encoders.recipes.locate import DEFAULT_MODEL, find_model

_BASE: dict[str, Any] = {
    "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64,
}  # fmt: skip
_POSITIONS: dict[str, Any] = {**_BASE, "max_position_embeddings": 128}
_ROBERTA: dict[str, Any] = {**_BASE, "max_position_embeddings": 130, "pad_token_id": 1}
_GROUPED: dict[str, Any] = {**_POSITIONS, "num_key_value_heads": 2}
_HEADS: dict[str, Any] = {**_GROUPED, "head_dim": 8}
_T5: dict[str, Any] = {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4}
_XLM: dict[str, Any] = {"emb_dim": 32, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 128}
_DEBERTA: dict[str, Any] = {
    **_POSITIONS, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False,
}  # fmt: skip

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("Bert", _POSITIONS),
    "roberta": ("Roberta", _ROBERTA),
    "xlm-roberta": ("XLMRoberta", _ROBERTA),
    "camembert": ("Camembert", _ROBERTA),
    "distilbert": (
        "DistilBert",
        {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64, "max_position_embeddings": 128},
    ),
    "mpnet": ("MPNet", _ROBERTA),
    "albert": ("Albert", {**_POSITIONS, "embedding_size": 16}),
    "electra": ("Electra", {**_POSITIONS, "embedding_size": 16}),
    "deberta-v2": (
        "DebertaV2",
        {**_DEBERTA, "position_buckets": 16, "share_att_key": True, "norm_rel_ebd": "layer_norm"},
    ),
    "deberta": ("Deberta", _DEBERTA),
    "convbert": ("ConvBert", {**_POSITIONS, "embedding_size": 16}),
    "funnel": (
        "Funnel",
        {"d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 64, "block_sizes": [1, 1], "num_decoder_layers": 1},
    ),
    "ernie": ("Ernie", _POSITIONS),
    "big_bird": ("BigBird", {**_POSITIONS, "attention_type": "original_full"}),
    "rembert": ("RemBert", {**_POSITIONS, "input_embedding_size": 16, "output_embedding_size": 16}),
    "nystromformer": ("Nystromformer", _POSITIONS),
    "mobilebert": (
        "MobileBert",
        {**_POSITIONS, "embedding_size": 16, "intra_bottleneck_size": 16},
    ),
    "squeezebert": (
        "SqueezeBert",
        {
            **_POSITIONS,
            "embedding_size": 32,
            "q_groups": 1,
            "k_groups": 1,
            "v_groups": 1,
            "post_attention_groups": 1,
            "intermediate_groups": 1,
            "output_groups": 1,
        },
    ),
    "megatron-bert": ("MegatronBert", _POSITIONS),
    "ibert": ("IBert", _ROBERTA),
    "roformer": ("RoFormer", {**_POSITIONS, "embedding_size": 32}),
    "esm": ("Esm", _ROBERTA),
    "xlm": ("XLM", _XLM),
    "xlm-roberta-xl": ("XLMRobertaXL", _ROBERTA),
    "data2vec-text": ("Data2VecText", _ROBERTA),
    "layoutlm": ("LayoutLM", _POSITIONS),
    "longformer": ("Longformer", {**_ROBERTA, "attention_window": 16}),
    "mra": ("Mra", _POSITIONS),
    "xlnet": ("XLNet", {"d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 64}),
    "fnet": ("FNet", _POSITIONS),
    "flaubert": ("Flaubert", _XLM),
    "splinter": ("Splinter", _POSITIONS),
    "roc_bert": ("RoCBert", _POSITIONS),
    "xmod": ("Xmod", {**_ROBERTA, "languages": ["en_XX"], "default_language": "en_XX"}),
    "roberta-prelayernorm": ("RobertaPreLayerNorm", _ROBERTA),
    "modernbert": (
        "ModernBert",
        {**_POSITIONS, "num_hidden_layers": 3, "global_attn_every_n_layers": 3, "local_attention": 16},
    ),
    "nomic_bert": ("NomicBert", _POSITIONS),
    "gte": ("Gte", _POSITIONS),
    "jina_embeddings_v3": ("JinaEmbeddingsV3", _POSITIONS),
    "eurobert": ("EuroBert", _HEADS),
    "t5": ("T5", _T5),
    "mt5": ("MT5", _T5),
    "umt5": ("UMT5", _T5),
    "gpt2": ("GPT2", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128}),
    "gpt_neo": (
        "GPTNeo",
        {
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "max_position_embeddings": 128,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 16,
        },
    ),
    "gpt_neox": ("GPTNeoX", _POSITIONS),
    "gptj": ("GPTJ", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 128, "rotary_dim": 4}),
    "bloom": ("Bloom", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "opt": (
        "OPT",
        {
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "ffn_dim": 64,
            "max_position_embeddings": 128,
            "word_embed_proj_dim": 32,
        },
    ),
    "llama": ("Llama", _HEADS),
    "mistral": ("Mistral", {**_HEADS, "sliding_window": 16}),
    "qwen2": ("Qwen2", _GROUPED),
    "qwen3": ("Qwen3", _HEADS),
    "gemma": ("Gemma", _HEADS),
    "gemma2": ("Gemma2", {**_HEADS, "sliding_window": 16}),
    "gemma3_text": ("Gemma3Text", {**_HEADS, "sliding_window": 16, "use_bidirectional_attention": True}),
    "phi": ("Phi", _POSITIONS),
    "phi3": ("Phi3", _GROUPED),
    "olmo2": ("Olmo2", _GROUPED),
    "granite": ("Granite", _GROUPED),
    "smollm3": ("SmolLM3", _GROUPED),
    "stablelm": ("StableLm", _GROUPED),
    "starcoder2": ("Starcoder2", _GROUPED),
    "falcon": ("Falcon", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}),
    "cohere": ("Cohere", _GROUPED),
    "mpt": ("Mpt", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 128}),
    "xglm": (
        "XGLM",
        {"d_model": 32, "num_layers": 2, "attention_heads": 4, "ffn_dim": 64, "max_position_embeddings": 128},
    ),
}
"""The name of transformers' class without "Model", and its configuration, by `model_type`."""

_BERT_BASE: dict[str, Any] = {"max_position_embeddings": 514}
_ROBERTA_BASE: dict[str, Any] = {**_BERT_BASE, "pad_token_id": 1, "layer_norm_eps": 1e-5}
REAL_SIZES: dict[str, tuple[str, dict[str, Any]]] = {
    "MiniLM (6 layers)": (
        "bert",
        {**_BERT_BASE, "hidden_size": 384, "num_hidden_layers": 6, "intermediate_size": 1536},
    ),
    "BERT base": ("bert", _BERT_BASE),
    "XLM-R base": ("xlm-roberta", _ROBERTA_BASE),
    "MPNet base": ("mpnet", _ROBERTA_BASE),
    "DistilBERT": ("distilbert", {}),
    "ModernBERT base": ("modernbert", {}),
    "Nomic": ("nomic_bert", {}),
    "GTE base": ("gte", {}),
    "T5 base": ("t5", {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}),
    "EmbeddingGemma": (
        "gemma3_text",
        {
            "hidden_size": 768,
            "num_hidden_layers": 24,
            "num_attention_heads": 3,
            "num_key_value_heads": 1,
            "head_dim": 256,
            "intermediate_size": 1152,
            "sliding_window": 512,
            "use_bidirectional_attention": True,
        },
    ),
    "Qwen3 (8 layers of 28)": (
        "qwen3",
        {
            "hidden_size": 1024,
            "num_hidden_layers": 8,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
        },
    ),
}
"""Architecture and configuration of known models at real size, with the vocabulary of the default model. What is left
out is the default of transformers, which is the base size."""


def make_folder(
    name: str, folder: Path, settings: dict[str, Any] | None = None, *, head: str = "", large: bool = False
) -> Path:
    """Save a model of an architecture with the default model's tokenizer into `folder`, which is made; return it.

    Args:
        settings: the configuration of a model at real size, whose weights stay as transformers draws them; None is the
            small one.
        head: the end of the name of transformers' class, such as ForSequenceClassification; empty for a plain encoder.
        large: whether all weights are larger than at the usual start, so that layers and tokens differ, as without
            settings.
    """
    import torch
    import transformers

    kind, small = ARCHITECTURES[name]
    source = find_model(DEFAULT_MODEL)
    folder.mkdir(parents=True)
    shutil.copy(source / "tokenizer.json", folder)
    names = {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]"}
    limit = 128 if settings is None else 256
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": limit, **names}
    (folder / "tokenizer_config.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    ids = {"vocab_size": 30522, "pad_token_id": 0, "bos_token_id": 101, "eos_token_id": 102}
    config = getattr(transformers, f"{kind}Config")(**{**ids, **(small if settings is None else settings)})
    encoder = "EncoderModel" if kind in ("T5", "MT5", "UMT5") else "Model"
    torch.manual_seed(3)
    model = getattr(transformers, kind + (head or encoder))(config)
    for parameter in model.parameters():
        if (large or settings is None) and parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.15)
    model.save_pretrained(folder)
    return folder
