// RUN: recompute-opt %s --split-input-file --verify-diagnostics

// A comparison of signed integers must not have the type UNSIGNED: the specification forbids it, although XLA obeys it.
func.func @compared(%a: tensor<4xi32>) -> tensor<4xi1> {
  // expected-error@+1 {{C4: compare_type is UNSIGNED, expected SIGNED for elements of type i32}}
  %0 = stablehlo.compare GT, %a, %a, UNSIGNED : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

// -----

func.func @floats(%a: tensor<4xf32>) -> tensor<4xi1> {
  // expected-error@+1 {{C4: compare_type is SIGNED, expected FLOAT or TOTALORDER for elements of type f32}}
  %0 = stablehlo.compare GT, %a, %a, SIGNED : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

// -----

func.func @complex(%a: tensor<4xcomplex<f32>>) -> tensor<4xi1> {
  // expected-error@+1 {{C4: compare_type is TOTALORDER, expected FLOAT for elements of type complex<f32>}}
  %0 = stablehlo.compare EQ, %a, %a, TOTALORDER : (tensor<4xcomplex<f32>>, tensor<4xcomplex<f32>>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

// -----

sdy.mesh @m = <["x"=2]>
// expected-error@+1 {{expected a sharding}}
func.func @sharded() attributes {sdy.sharding = #sdy.sharding_per_value<[#sdy.mesh<["x"=2]>]>}

// -----

func.func @reshaped(%a: tensor<128xf32>, %s: tensor<2xindex>) {
  // expected-error@+1 {{length of shape operand differs from the result's tensor rank}}
  %0 = tensor.reshape %a(%s) : (tensor<128xf32>, tensor<2xindex>) -> tensor<?x?x?xf32>
  func.return
}

// -----

func.func @resized(%a: tensor<128xf32>, %s: tensor<?xindex>) {
  // expected-error@+1 {{cannot use shape operand with dynamic length}}
  %0 = tensor.reshape %a(%s) : (tensor<128xf32>, tensor<?xindex>) -> tensor<8x16xf32>
  func.return
}
