"""Operations of PyTorch that the proof treats as pure; `pure_operations.py` includes the list.

Each operation is a function of its operands and its argument list: it draws no random numbers, writes to no operand,
and reads nothing else. `aten.empty` and similar operations are assumed to return the same elements each time, as
`tensor.empty` is.

A random operation, `torch.seeded.…`, is a function of the generator state that is drawn for it: with the same state it
returns the same numbers. The random operations of Inductor are functions of a seed, which is an operand. The draw
itself, `torch.draw`, is an effect. `torch.read` is also an effect, because its position among the writes matters.

The list deliberately omits all in-place operations (`copy_`); `native_batch_norm`, which updates its statistics in
place although its schema does not state this; collectives; checks (`_assert_async`); and operations that depend on a
file, the clock of a device or a hidden cache. Source: the reference of each operation,
https://docs.pytorch.org/docs/stable/torch.html, and native_functions.yaml.
"""

from __future__ import annotations

_ATEN = """
__lshift__.Scalar __lshift__.Tensor __rshift__.Scalar __rshift__.Tensor _adaptive_avg_pool2d.default
_adaptive_avg_pool2d_backward.default _adaptive_avg_pool3d.default _adaptive_avg_pool3d_backward.default
_add_relu.Scalar _add_relu.Tensor _addmm_activation.default _aminmax.default _aminmax.dim _batch_norm_no_update.default
_batch_norm_with_update_functional.default _cdist_backward.default _cdist_forward.default _chunk_cat.default
_conj.default _conj_physical.default _conv_depthwise2d.default _convolution.default _ctc_loss_backward.Tensor
_ctc_loss_backward.default _cudnn_rnn_backward.default _dirichlet_grad.default _efficient_attention_backward.default
_efficientzerotensor.default _embedding_bag.default _embedding_bag_backward.default
_embedding_bag_dense_backward.default _embedding_bag_forward_only.default
_embedding_bag_per_sample_weights_backward.default _euclidean_dist.default
_fake_quantize_learnable_per_channel_affine.default _fake_quantize_learnable_per_channel_affine_backward.default
_fake_quantize_learnable_per_tensor_affine.default _fake_quantize_learnable_per_tensor_affine_backward.default
_fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default _fft_c2c.default _fft_c2r.default _fft_r2c.default
_flash_attention_backward.default _foreach_abs.default _foreach_acos.default _foreach_add.List _foreach_add.Scalar
_foreach_add.ScalarList _foreach_add.Tensor _foreach_addcdiv.Scalar _foreach_addcdiv.ScalarList _foreach_addcdiv.Tensor
_foreach_addcmul.Scalar _foreach_addcmul.ScalarList _foreach_addcmul.Tensor _foreach_asin.default _foreach_atan.default
_foreach_ceil.default _foreach_clamp_max.List _foreach_clamp_max.Scalar _foreach_clamp_max.ScalarList
_foreach_clamp_min.List _foreach_clamp_min.Scalar _foreach_clamp_min.ScalarList _foreach_clone.default
_foreach_cos.default _foreach_cosh.default _foreach_div.List _foreach_div.Scalar _foreach_div.ScalarList
_foreach_div.Tensor _foreach_erf.default _foreach_erfc.default _foreach_exp.default _foreach_expm1.default
_foreach_floor.default _foreach_frac.default _foreach_lerp.List _foreach_lerp.Scalar _foreach_lerp.ScalarList
_foreach_lgamma.default _foreach_log.default _foreach_log10.default _foreach_log1p.default _foreach_log2.default
_foreach_max.default _foreach_maximum.List _foreach_maximum.Scalar _foreach_maximum.ScalarList _foreach_minimum.List
_foreach_minimum.Scalar _foreach_minimum.ScalarList _foreach_mm.default _foreach_mul.List _foreach_mul.Scalar
_foreach_mul.ScalarList _foreach_mul.Tensor _foreach_neg.default _foreach_norm.Scalar _foreach_pow.List
_foreach_pow.Scalar _foreach_pow.ScalarAndTensor _foreach_pow.ScalarList _foreach_powsum.Scalar
_foreach_reciprocal.default _foreach_round.default _foreach_rsqrt.default _foreach_sigmoid.default
_foreach_sign.default _foreach_sin.default _foreach_sinh.default _foreach_sqrt.default _foreach_sub.List
_foreach_sub.Scalar _foreach_sub.ScalarList _foreach_tan.default _foreach_tanh.default _foreach_trunc.default
_foreach_zero.default _fused_rms_norm_backward.default _grouped_mm.default _int_mm.default _is_all_true.default
_is_any_true.default _linalg_det.default _linalg_eigh.default _linalg_eigvals.default _linalg_slogdet.default
_linalg_solve_ex.default _linalg_svd.default _log_softmax.default _log_softmax_backward_data.default
_logcumsumexp.default _masked_scale.default _masked_softmax.default _masked_softmax_backward.default
_native_batch_norm_legit.no_stats _native_batch_norm_legit_functional.default
_native_batch_norm_legit_no_training.default _neg_view.default _pdist_backward.default _pdist_forward.default
_prelu_kernel.default _prelu_kernel_backward.default _safe_softmax.default
_scaled_dot_product_flash_attention_backward.default _scaled_dot_product_flash_attention_for_cpu_backward.default
_scaled_dot_product_fused_attention_overrideable_backward.default _scaled_grouped_mm.default _scaled_mm.default
_scaled_mm_v2.default _segment_reduce_backward.default _slow_conv2d_backward.output_mask _slow_conv2d_forward.default
_softmax.default _softmax_backward_data.default _stack.default _standard_gamma_grad.default
_thnn_fused_gru_cell.default _thnn_fused_gru_cell_backward.default _thnn_fused_lstm_cell.default
_thnn_fused_lstm_cell_backward_impl.default _to_copy.default _trilinear.default _unsafe_index.Tensor
_unsafe_index_put.default _unsafe_masked_index.default _unsafe_masked_index_put_accumulate.default _unsafe_view.default
_upsample_bicubic2d_aa.default _upsample_bicubic2d_aa_backward.default _upsample_bilinear2d_aa.default
_upsample_bilinear2d_aa_backward.default _upsample_nearest_exact1d.default _upsample_nearest_exact1d_backward.default
_upsample_nearest_exact2d.default _upsample_nearest_exact2d_backward.default _upsample_nearest_exact3d.default
_upsample_nearest_exact3d_backward.default _weight_norm_interface.default _weight_norm_interface_backward.default
abs.default acos.default acosh.default adaptive_max_pool2d.default adaptive_max_pool2d_backward.default
adaptive_max_pool3d.default adaptive_max_pool3d_backward.default add.Scalar add.Tensor addbmm.default addcdiv.default
addcmul.default addmm.default addmm.dtype addmv.default addr.default affine_grid_generator.default alias.default
all.default all.dim all.dims amax.default amin.default aminmax.default angle.default any.default any.dim any.dims
arange.default arange.start arange.start_step argmax.default argmin.default as_strided.default
as_strided_scatter.default asin.default asinh.default atan.default atan2.default atanh.default avg_pool2d.default
avg_pool2d_backward.default avg_pool3d.default avg_pool3d_backward.default baddbmm.default baddbmm.dtype
bartlett_window.default bartlett_window.periodic batch_norm_backward.default batch_norm_backward_elemt.default
batch_norm_backward_reduce.default batch_norm_elemt.default batch_norm_stats.default binary_cross_entropy.default
binary_cross_entropy_backward.default binary_cross_entropy_with_logits.default bitwise_and.Scalar
bitwise_and.Scalar_Tensor bitwise_and.Tensor bitwise_left_shift.Scalar_Tensor bitwise_left_shift.Tensor
bitwise_left_shift.Tensor_Scalar bitwise_not.default bitwise_or.Scalar bitwise_or.Scalar_Tensor bitwise_or.Tensor
bitwise_right_shift.Scalar_Tensor bitwise_right_shift.Tensor bitwise_right_shift.Tensor_Scalar bitwise_xor.Scalar
bitwise_xor.Scalar_Tensor bitwise_xor.Tensor blackman_window.default blackman_window.periodic block_diag.default
bmm.default bmm.dtype bucketize.Scalar bucketize.Tensor cat.default ceil.default celu.default channel_shuffle.default
cholesky.default cholesky_inverse.default cholesky_solve.default clamp.Tensor clamp.default clamp_max.Tensor
clamp_max.default clamp_min.Tensor clamp_min.default clone.default col2im.default complex.default
constant_pad_nd.default conv_depthwise3d.default conv_tbc.default convolution.default convolution_backward.default
convolution_backward_overrideable.default convolution_overrideable.default copy.default copysign.Scalar copysign.Tensor
cos.default cosh.default count_nonzero.default count_nonzero.dim_IntList cummax.default cummin.default cumprod.default
cumsum.default deg2rad.default dequantize.self dequantize.tensors detach.default diag_embed.default diagonal.default
diagonal_backward.default diagonal_scatter.default digamma.default dist.default div.Scalar div.Scalar_mode div.Tensor
div.Tensor_mode dot.default elu.default elu_backward.default embedding.default embedding_dense_backward.default
embedding_renorm.default empty.memory_format empty_like.default empty_permuted.default empty_strided.default eq.Scalar
eq.Tensor erf.default erfc.default erfinv.default exp.default exp2.default expand.default expm1.default eye.default
eye.m fake_quantize_per_channel_affine_cachemask.default fake_quantize_per_tensor_affine_cachemask.default
fft_fftfreq.default fft_rfftfreq.default fill.Scalar fill.Tensor flip.default floor.default floor_divide.Scalar
floor_divide.default fmax.default fmin.default fmod.Scalar fmod.Tensor frac.default fractional_max_pool2d.default
fractional_max_pool2d_backward.default fractional_max_pool3d.default fractional_max_pool3d_backward.default
frexp.Tensor full.default full_like.default gather.default gcd.default ge.Scalar ge.Tensor gelu.default
gelu_backward.default geqrf.default glu.default glu_backward.default glu_backward_jvp.default glu_jvp.default
grid_sampler_2d.default grid_sampler_2d_backward.default grid_sampler_3d.default grid_sampler_3d_backward.default
gt.Scalar gt.Tensor hamming_window.default hamming_window.periodic hamming_window.periodic_alpha
hamming_window.periodic_alpha_beta hann_window.default hann_window.periodic hardshrink.default
hardshrink_backward.default hardsigmoid.default hardsigmoid_backward.default hardswish.default
hardswish_backward.default hardtanh.default hardtanh_backward.default heaviside.default histc.default histogram.bin_ct
histogram.bins_tensor huber_loss.default huber_loss_backward.default hypot.default i0.default igamma.default
igammac.default im2col.default index.Tensor index_add.default index_copy.default index_fill.int_Scalar
index_fill.int_Tensor index_put.default index_reduce.default index_select.default isin.Scalar_Tensor isin.Tensor_Scalar
isin.Tensor_Tensor isinf.default isnan.default isneginf.default isposinf.default kaiser_window.beta
kaiser_window.default kaiser_window.periodic kthvalue.default lcm.default ldexp.Tensor le.Scalar le.Tensor
leaky_relu.default leaky_relu_backward.default lerp.Scalar lerp.Tensor lgamma.default lift.default lift_fresh.default
lift_fresh_copy.default linalg__powsum.default linalg_cholesky_ex.default linalg_cross.default linalg_eig.default
linalg_householder_product.default linalg_inv_ex.default linalg_ldl_factor_ex.default linalg_ldl_solve.default
linalg_lu.default linalg_lu_factor_ex.default linalg_lu_solve.default linalg_matrix_exp.default
linalg_pinv.atol_rtol_tensor linalg_qr.default linalg_solve_triangular.default linalg_vector_norm.default
linear_backward.default linspace.Scalar_Tensor linspace.Tensor_Scalar linspace.Tensor_Tensor linspace.default
log.default log10.default log1p.default log2.default log_sigmoid_backward.default log_sigmoid_forward.default
logaddexp.default logaddexp2.default logcumsumexp.default logical_and.default logical_not.default logical_or.default
logical_xor.default logit.default logit_backward.default logspace.Scalar_Tensor logspace.Tensor_Scalar
logspace.Tensor_Tensor logspace.default logsumexp.default lt.Scalar lt.Tensor lu_unpack.default masked_fill.Scalar
masked_fill.Tensor masked_scatter.default masked_scatter_backward.default matmul_backward.default max.default max.dim
max_pool2d_backward.default max_pool2d_with_indices.default max_pool2d_with_indices_backward.default
max_pool3d_with_indices.default max_pool3d_with_indices_backward.default max_unpool2d.default max_unpool3d.default
maximum.default mean.default mean.dim median.default median.dim min.default min.dim minimum.default mish.default
mish_backward.default mm.default mm.dtype mode.default mse_loss.default mse_loss_backward.default mul.Scalar mul.Tensor
multi_margin_loss.default multi_margin_loss_backward.default multilabel_margin_loss_backward.default
multilabel_margin_loss_forward.default mv.default mvlgamma.default nan_to_num.default nanmedian.default nanmedian.dim
nansum.default native_batch_norm_backward.default native_channel_shuffle.default native_dropout_backward.default
native_group_norm.default native_group_norm_backward.default native_layer_norm.default
native_layer_norm_backward.default native_norm.ScalarOpt_dim_dtype native_norm.default ne.Scalar ne.Tensor neg.default
new_empty.default new_empty_strided.default new_full.default new_ones.default new_zeros.default nextafter.default
nll_loss2d_backward.default nll_loss2d_forward.default nll_loss_backward.default nll_loss_forward.default
nonzero_static.default norm.Scalar norm.ScalarOpt_dim norm.ScalarOpt_dim_dtype norm.ScalarOpt_dtype ones.default
ones_like.default ormqr.default permute.default pixel_shuffle.default pixel_unshuffle.default polar.default
polygamma.default pow.Scalar pow.Tensor_Scalar pow.Tensor_Tensor prod.default prod.dim_int put.default rad2deg.default
range.default range.step reciprocal.default reflection_pad1d.default reflection_pad1d_backward.default
reflection_pad2d.default reflection_pad2d_backward.default reflection_pad3d.default reflection_pad3d_backward.default
relu.default remainder.Scalar remainder.Scalar_Tensor remainder.Tensor renorm.default repeat.default
replication_pad1d.default replication_pad1d_backward.default replication_pad2d.default
replication_pad2d_backward.default replication_pad3d.default replication_pad3d_backward.default roll.default
rot90.default round.decimals round.default rrelu_with_noise_backward.default rsqrt.default rsub.Scalar rsub.Tensor
scalar_tensor.default scatter.reduce scatter.src scatter.value scatter.value_reduce scatter_add.default
scatter_reduce.two searchsorted.Scalar searchsorted.Tensor segment_reduce.default select.int select_backward.default
select_scatter.default sgn.default sigmoid.default sigmoid_backward.default sign.default signbit.default silu.default
silu_backward.default sin.default sinc.default sinh.default slice.Tensor slice_backward.default slice_inverse.default
slice_scatter.default slow_conv3d_forward.default slow_conv_dilated2d.default slow_conv_dilated3d.default
slow_conv_transpose2d.default slow_conv_transpose3d.default smooth_l1_loss.default smooth_l1_loss_backward.default
soft_margin_loss.default soft_margin_loss_backward.default softplus.default softplus_backward.default
softshrink.default softshrink_backward.default sort.default sort.stable special_airy_ai.default
special_bessel_j0.default special_bessel_j1.default special_bessel_y0.default special_bessel_y1.default
special_chebyshev_polynomial_t.default special_chebyshev_polynomial_t.n_scalar special_chebyshev_polynomial_t.x_scalar
special_chebyshev_polynomial_u.default special_chebyshev_polynomial_u.n_scalar special_chebyshev_polynomial_u.x_scalar
special_chebyshev_polynomial_v.default special_chebyshev_polynomial_v.n_scalar special_chebyshev_polynomial_v.x_scalar
special_chebyshev_polynomial_w.default special_chebyshev_polynomial_w.n_scalar special_chebyshev_polynomial_w.x_scalar
special_entr.default special_erfcx.default special_hermite_polynomial_h.default special_hermite_polynomial_h.n_scalar
special_hermite_polynomial_h.x_scalar special_hermite_polynomial_he.default special_hermite_polynomial_he.n_scalar
special_hermite_polynomial_he.x_scalar special_i0e.default special_i1.default special_i1e.default
special_laguerre_polynomial_l.default special_laguerre_polynomial_l.n_scalar special_laguerre_polynomial_l.x_scalar
special_legendre_polynomial_p.default special_legendre_polynomial_p.n_scalar special_legendre_polynomial_p.x_scalar
special_log_ndtr.default special_modified_bessel_i0.default special_modified_bessel_i1.default
special_modified_bessel_k0.default special_modified_bessel_k1.default special_ndtri.default
special_scaled_modified_bessel_k0.default special_scaled_modified_bessel_k1.default
special_shifted_chebyshev_polynomial_t.default special_shifted_chebyshev_polynomial_t.n_scalar
special_shifted_chebyshev_polynomial_t.x_scalar special_shifted_chebyshev_polynomial_u.default
special_shifted_chebyshev_polynomial_u.n_scalar special_shifted_chebyshev_polynomial_u.x_scalar
special_shifted_chebyshev_polynomial_v.default special_shifted_chebyshev_polynomial_v.n_scalar
special_shifted_chebyshev_polynomial_v.x_scalar special_shifted_chebyshev_polynomial_w.default
special_shifted_chebyshev_polynomial_w.n_scalar special_shifted_chebyshev_polynomial_w.x_scalar
special_spherical_bessel_j0.default special_xlog1py.default special_xlog1py.other_scalar special_xlog1py.self_scalar
special_zeta.default special_zeta.other_scalar special_zeta.self_scalar split.Tensor split_with_sizes.default
sqrt.default squeeze.default squeeze.dim squeeze.dims stack.default std.correction std_mean.correction sub.Scalar
sub.Tensor sum.default sum.dim_IntList t.default take.default tan.default tanh.default tanh_backward.default
threshold.default threshold_backward.default topk.default trace.default transpose.int triangular_solve.default
tril.default tril_indices.default triu.default triu_indices.default trunc.default unbind.int unfold.default
unfold_backward.default unsafe_split.Tensor unsafe_split_with_sizes.default unsqueeze.default
upsample_bicubic2d.default upsample_bicubic2d_backward.default upsample_bilinear2d.default
upsample_bilinear2d_backward.default upsample_linear1d.default upsample_linear1d_backward.default
upsample_nearest1d.default upsample_nearest1d_backward.default upsample_nearest2d.default
upsample_nearest2d_backward.default upsample_nearest3d.default upsample_nearest3d_backward.default
upsample_trilinear3d.default upsample_trilinear3d_backward.default var.correction var_mean.correction vdot.default
view.default view.dtype view_as_complex.default view_as_real.default where.self xlogy.Scalar_Other xlogy.Scalar_Self
xlogy.Tensor zero.default zeros.default zeros_like.default
"""

_PRIMS = """
_low_memory_max_pool_offsets_to_indices.default _low_memory_max_pool_with_offsets.default convert_element_type.default
fma.default inductor_force_stride_order.default inductor_lookup_seed.default inductor_randint.default
inductor_random.default prepare_softmax_online.default
"""

_RANDOM = """
_efficient_attention_forward.default _flash_attention_forward.default _fused_dropout.default _sample_dirichlet.default
_scaled_dot_product_cudnn_attention.default _scaled_dot_product_efficient_attention.default
_scaled_dot_product_flash_attention.default _scaled_dot_product_flash_attention_for_cpu.default _standard_gamma.default
bernoulli.Tensor bernoulli.default bernoulli.p binomial.default cauchy.default exponential.default geometric.default
log_normal.default multinomial.default native_dropout.default normal.Tensor_Tensor normal.Tensor_float
normal.float_Tensor normal.float_float normal_functional.default poisson.default rand.default rand_like.default
randint.default randint.low randint_like.Tensor randint_like.default randint_like.low_dtype randn.default
randn_like.default random.default random.from random.to randperm.default rrelu_with_noise_functional.default
uniform.default
"""

_ON_SIZES = """
add and_ eq floordiv ge gt le lt mod mul ne neg or_ pow sub sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt
sym_sum truediv
"""

PURE_ATEN = frozenset(
    [f"torch.aten.{name}" for name in _ATEN.split()]
    + [f"torch.prims.{name}" for name in _PRIMS.split()]
    + [f"torch.aten.sym_{name}" for name in ("numel.default", "size.int", "storage_offset.default", "stride.int")]
    + [f"torch.python.{name}.default" for name in _ON_SIZES.split()]
    + [f"torch.seeded.aten.{name}" for name in _RANDOM.split()]
    + ["torch.get_attr"]
)
