// The members of config.json and generation_config.json that all families have in common.
#include "encoder/families/families.h"

namespace cloze {

std::vector<absl::string_view> CommonMembers() {
  return {// Read by ParseConfig and ReadHead.
      "model_type", "architectures", "is_decoder", "add_cross_attention", "rope_scaling",
      "position_embedding_type", "pad_token_id", "head_dim", "attention_head_size",
      "tie_word_embeddings", "id2label", "label2id", "num_labels", "problem_type", "cloze",
      "quantization_config", "quantized_from", "is_encoder_decoder", "sentence_transformers",
      "sbert_ce_default_activation_function", "typical_p", "encoder_no_repeat_ngram_size",
      // Describe the file, and how transformers computes.
      "transformers_version", "dtype", "torch_dtype", "return_dict", "use_return_dict",
      "output_hidden_states", "output_attentions", "output_past", "use_cache", "torchscript",
      "use_bfloat16", "chunk_size_feed_forward", "gradient_checkpointing", "finetuning_task",
      "task_specific_params", "tokenizer_class", "transformers.js_config", "prefix", "language",
      "name", "emb_size", "xla_device",
      // The tokenizer has these ids; those of decoders are read where they are used.
      "bos_token_id", "eos_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
      "unk_token_id", "decoder_start_token_id", "forced_bos_token_id", "forced_eos_token_id",
      "bad_words_ids", "min_length", "min_new_tokens", "no_repeat_ngram_size",
      // Google's BERT files have them, and no class uses them.
      "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
      "pooler_size_per_head", "pooler_type",
      // How to search for a text: options of `cloze generate` say it (docs/generating.md).
      "max_length", "max_new_tokens", "do_sample", "early_stopping", "num_beams", "num_beam_groups",
      "diversity_penalty", "temperature", "top_k", "top_p", "min_p", "repetition_penalty",
      "length_penalty", "num_return_sequences", "output_scores", "return_dict_in_generate",
      "remove_invalid_values", "renormalize_logits"};
}

}  // namespace cloze
