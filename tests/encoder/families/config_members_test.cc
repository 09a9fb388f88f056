// Which members of config.json pass, and which are refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "encoder/families/families.h"
#include "nlohmann/json.hpp"

namespace cloze {
namespace {

using ::testing::HasSubstr;

// A small BERT with members replaced or added.
std::string Bert(const std::string& changes) {
  nlohmann::json json = {{"model_type", "bert"}, {"architectures", {"BertForMaskedLM"}},
      {"vocab_size", 120}, {"hidden_size", 64}, {"num_hidden_layers", 2},
      {"num_attention_heads", 4}, {"intermediate_size", 128}, {"max_position_embeddings", 48}};
  json.update(nlohmann::json::parse(changes));
  return json.dump();
}

// What readers do not know may change results.
TEST(ParseConfigTest, OnlyKnownMembersPass) {
  const auto message = [](const std::string& changes) {
    return std::string(ParseConfig(Bert(changes), "c").status().message());
  };
  const char* refused[] = {R"({"logit_scale":0.5})", R"({"rope_theta":10000})",
      R"({"attn_implementation":"torch"})", R"({"auto_map":{"AutoModel":"x.Y"}})",
      R"({"num_key_value_heads":2})", R"({"is_encoder_decoder":true})", R"({"embedding_size":64})",
      R"({"position_buckets":8})",
      R"({"sentence_transformers":{"activation_fn":"torch.nn.modules.activation.Tanh"}})"};
  for (const char* member : refused) {
    const std::string name = nlohmann::json::parse(member).begin().key();
    EXPECT_THAT(message(member), HasSubstr(name)) << member;
  }
  EXPECT_THAT(message(refused[0]), HasSubstr("remove it if it has no meaning"));
  for (const char* passes : {R"({"logit_scale":null})", R"({"use_new_trick":false})",
           R"({"new_list":[]})", R"({"_commit":"x"})", R"({"new_name":"","new_map":{}})"})
    EXPECT_EQ(message(passes), "") << passes;
}

// Members of the config.json of public models, each in a small model.
TEST(ParseConfigTest, MembersOfPublicModelsPass) {
  const char* of_bert[] = {
      R"({"directionality":"bidi","pooler_fc_size":768,"pooler_num_attention_heads":12,
          "pooler_num_fc_layers":3,"pooler_size_per_head":128,
          "pooler_type":"first_token_transform"})",
      R"({"gradient_checkpointing":false,"position_embedding_type":"absolute","use_cache":true,
          "classifier_dropout":null,"torch_dtype":"float16","transformers_version":"4.51.0"})",
      R"({"architectures":["BertForSequenceClassification"],"id2label":{"0":"LABEL_0"},
          "label2id":{"LABEL_0":0},"sentence_transformers":{"version":"4.1.0.dev0",
          "activation_fn":"torch.nn.modules.linear.Identity"}})",
      R"({"sbert_ce_default_activation_function":"torch.nn.modules.linear.Identity"})",
      R"({"finetuning_task":"sst-2","output_past":true,"tokenizer_class":"BertTokenizer"})",
      R"({"language":"english","name":"Bert","_num_labels":3,"xla_device":true})",
      R"({"cell":{},"emb_size":312,"pre_trained":"","structure":[],"training":""})",
      R"({"num_beams":1,"max_length":20,"top_k":50,"top_p":1.0,"temperature":1.0,"prefix":null,
          "typical_p":1.0,"encoder_no_repeat_ngram_size":0,"length_penalty":1.0,
          "diversity_penalty":0.0,"num_beam_groups":1,"chunk_size_feed_forward":0,
          "pruned_heads":{},"torchscript":false,"tie_encoder_decoder":false,
          "cross_attention_hidden_size":null,"exponential_decay_length_penalty":null})",
      R"({"model_type":"electra","summary_activation":"gelu","summary_last_dropout":0.1,
          "embedding_size":64,"summary_type":"first","summary_use_proj":true})",
      R"({"model_type":"albert","down_scale_factor":1,"gap_size":0,"net_structure_type":0,
          "num_memory_blocks":0,"layers_to_keep":[],"inner_group_num":1,"num_hidden_groups":1})",
      R"({"model_type":"mpnet","relative_attention_num_buckets":32,"pad_token_id":1})",
      R"({"model_type":"xlm-roberta","output_past":true,"bos_token_id":0,"eos_token_id":2})",
      R"({"model_type":"deberta-v2","relative_attention":true,"position_buckets":8,
          "norm_rel_ebd":"layer_norm","share_att_key":true,"pos_att_type":"p2c|c2p",
          "max_relative_positions":-1,"position_biased_input":false,"pooler_dropout":0,
          "pooler_hidden_act":"gelu","pooler_hidden_size":64,"legacy":true,"type_vocab_size":0,
          "attention_head_size":16,"conv_kernel_size":3,"conv_act":"gelu"})"};
  for (const char* members : of_bert) {
    const auto config = ParseConfig(Bert(members), "c");
    EXPECT_TRUE(config.ok()) << config.status();
  }
}

// Models whose files have other names of sizes.
TEST(ParseConfigTest, MembersOfPublicModelsOfOtherFamiliesPass) {
  const char* models[] = {
      R"({"model_type":"distilbert","activation":"gelu","architectures":["DistilBertForMaskedLM"],
          "attention_dropout":0.1,"dim":64,"dropout":0.1,"hidden_dim":128,"initializer_range":0.02,
          "max_position_embeddings":48,"n_heads":4,"n_layers":2,"pad_token_id":0,"qa_dropout":0.1,
          "seq_classif_dropout":0.2,"sinusoidal_pos_embds":false,"tie_weights_":true,
          "vocab_size":120})",
      R"({"model_type":"gpt2","activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],
          "attn_pdrop":0.1,"bos_token_id":119,"embd_pdrop":0.1,"eos_token_id":119,
          "initializer_range":0.02,"layer_norm_epsilon":1e-5,"n_ctx":48,"n_embd":64,"n_head":4,
          "n_layer":2,"n_positions":48,"resid_pdrop":0.1,"summary_activation":null,
          "summary_first_dropout":0.1,"summary_proj_to_labels":true,"summary_type":"cls_index",
          "summary_use_proj":true,"_num_labels":1,"vocab_size":120,
          "task_specific_params":{"text-generation":{"do_sample":true,"max_length":50}}})",
      R"({"model_type":"modernbert","architectures":["ModernBertForMaskedLM"],"attention_bias":false,
          "attention_dropout":0.0,"bos_token_id":1,"classifier_activation":"gelu",
          "classifier_bias":false,"classifier_dropout":0.0,"classifier_pooling":"mean",
          "cls_token_id":1,"decoder_bias":true,"deterministic_flash_attn":false,
          "embedding_dropout":0.0,"eos_token_id":2,"global_attn_every_n_layers":3,
          "global_rope_theta":160000.0,"gradient_checkpointing":false,"hidden_activation":"gelu",
          "hidden_size":64,"initializer_cutoff_factor":2.0,"initializer_range":0.02,
          "intermediate_size":96,"layer_norm_eps":1e-05,"local_attention":8,
          "local_rope_theta":10000.0,"max_position_embeddings":48,"mlp_bias":false,
          "mlp_dropout":0.0,"norm_bias":false,"norm_eps":1e-05,"num_attention_heads":4,
          "num_hidden_layers":3,"pad_token_id":0,"position_embedding_type":"absolute",
          "reference_compile":null,"repad_logits_with_grad":false,"sep_token_id":2,
          "sparse_pred_ignore_index":-100,"sparse_prediction":false,"vocab_size":120})",
      R"({"model_type":"nomic_bert","activation_function":"swiglu","architectures":["NomicBertModel"],
          "attn_pdrop":0.0,"auto_map":{"AutoModel":"x--modeling.NomicBertModel"},
          "bos_token_id":null,"causal":false,"dense_seq_output":true,"embd_pdrop":0.0,
          "eos_token_id":null,"fused_bias_fc":true,"fused_dropout_add_ln":true,
          "initializer_range":0.02,"layer_norm_epsilon":1e-12,"max_trained_positions":48,
          "mlp_fc1_bias":false,"mlp_fc2_bias":false,"n_embd":64,"n_head":4,"n_inner":96,
          "n_layer":2,"n_positions":48,"pad_vocab_size_multiple":64,"parallel_block":false,
          "parallel_block_tied_norm":false,"prenorm":false,"qkv_proj_bias":false,
          "reorder_and_upcast_attn":false,"resid_pdrop":0.0,"rotary_emb_base":1000,
          "rotary_emb_fraction":1.0,"rotary_emb_interleaved":false,"rotary_emb_scale_base":null,
          "rotary_scaling_factor":null,"scale_attn_by_inverse_layer_idx":false,
          "scale_attn_weights":true,"summary_activation":null,"summary_first_dropout":0.0,
          "summary_proj_to_labels":true,"summary_type":"cls_index","summary_use_proj":true,
          "type_vocab_size":2,"use_cache":true,"use_flash_attn":true,"use_rms_norm":false,
          "use_xentropy":true,"vocab_size":120})",
      R"({"model_type":"bart","activation_dropout":0.1,"activation_function":"gelu",
          "add_bias_logits":false,"add_final_layer_norm":false,
          "architectures":["BartForConditionalGeneration"],"attention_dropout":0.1,
          "bos_token_id":0,"classif_dropout":0.1,"classifier_dropout":0.0,"d_model":64,
          "decoder_attention_heads":4,"decoder_ffn_dim":128,"decoder_layerdrop":0.0,
          "decoder_layers":2,"decoder_start_token_id":2,"dropout":0.1,"early_stopping":true,
          "encoder_attention_heads":4,"encoder_ffn_dim":128,"encoder_layerdrop":0.0,
          "encoder_layers":2,"eos_token_id":2,"forced_bos_token_id":0,"forced_eos_token_id":2,
          "gradient_checkpointing":false,"init_std":0.02,"is_encoder_decoder":true,
          "length_penalty":2.0,"max_length":142,"max_position_embeddings":48,"min_length":56,
          "no_repeat_ngram_size":3,"normalize_before":false,"num_beams":4,"num_hidden_layers":2,
          "output_past":true,"pad_token_id":1,"prefix":" ","save_step":58,"scale_embedding":false,
          "_num_labels":3,"task_specific_params":{"summarization":{"num_beams":4}},
          "use_cache":true,"vocab_size":120})",
      R"({"model_type":"marian","_num_labels":3,"activation_dropout":0.0,
          "activation_function":"swish","add_bias_logits":false,"add_final_layer_norm":false,
          "architectures":["MarianMTModel"],"attention_dropout":0.0,"bad_words_ids":[[119]],
          "bos_token_id":0,"classif_dropout":0.0,"classifier_dropout":0.0,"d_model":64,
          "decoder_attention_heads":4,"decoder_ffn_dim":128,"decoder_layerdrop":0.0,
          "decoder_layers":2,"decoder_start_token_id":119,"decoder_vocab_size":120,"dropout":0.1,
          "encoder_attention_heads":4,"encoder_ffn_dim":128,"encoder_layerdrop":0.0,
          "encoder_layers":2,"eos_token_id":0,"extra_pos_embeddings":120,
          "forced_eos_token_id":0,"init_std":0.02,"is_encoder_decoder":true,"max_length":512,
          "max_position_embeddings":48,"normalize_before":false,"normalize_embedding":false,
          "num_beams":4,"num_hidden_layers":2,"pad_token_id":119,"scale_embedding":true,
          "share_encoder_decoder_embeddings":true,"static_position_embeddings":true,
          "use_cache":true,"vocab_size":120})"};
  for (const char* model : models) {
    const auto config = ParseConfig(model, "c");
    EXPECT_TRUE(config.ok()) << config.status();
  }
}

}  // namespace
}  // namespace cloze
