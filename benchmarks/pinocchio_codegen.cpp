// Writes Pinocchio's algorithms for one robot as C, through CasADi: what its own code generation gives.
//
// Reads a tree (see pinocchio_tree.hpp) from standard input; writes forward.c, inverse.c, forward_derivatives.c and
// inverse_derivatives.c, functions of (q, v, tau or a), into the directory that is its argument.

#define EIGEN_DONT_PARALLELIZE
#include <pinocchio/autodiff/casadi.hpp>

#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <iostream>
#include <string>
#include <vector>

#include "pinocchio_tree.hpp"

using SX = casadi::SX;
using SXVector = Eigen::Matrix<SX, Eigen::Dynamic, 1>;

static SXVector symbols(const SX & x)
{
  SXVector result(x.size1());
  for (int i = 0; i < x.size1(); ++i) result[i] = x(i);
  return result;
}

template <typename Matrix> static SX dense(const Matrix & x)
{
  SX result(x.rows(), x.cols());
  for (int j = 0; j < x.cols(); ++j)
    for (int i = 0; i < x.rows(); ++i) result(i, j) = x(i, j);
  return result;
}

int main(int, char ** arguments)
{
  const pin::Model numbers = read_tree();
  const auto model = numbers.cast<SX>();
  pin::DataTpl<SX> data(model);
  const SX q = SX::sym("q", model.nq), v = SX::sym("v", model.nv), x = SX::sym("x", model.nv);
  const SXVector q_ = symbols(q), v_ = symbols(v), x_ = symbols(x);
  const std::string directory = std::string(arguments[1]) + "/";
  const auto write = [&](const std::string & name, const std::vector<SX> & results) {
    casadi::CodeGenerator code(name + ".c");
    code.add(casadi::Function(name, {q, v, x}, results));
    code.generate(directory);
  };
  pin::aba(model, data, q_, v_, x_, pin::Convention::LOCAL);
  write("forward", {dense(data.ddq)});
  pin::rnea(model, data, q_, v_, x_);
  write("inverse", {dense(data.tau)});
  if (numbers.nv > 50) return 0;
  pin::computeABADerivatives(model, data, q_, v_, x_);
  data.Minv.triangularView<Eigen::StrictlyLower>() = data.Minv.transpose().triangularView<Eigen::StrictlyLower>();
  write("forward_derivatives", {dense(data.ddq_dq), dense(data.ddq_dv), dense(data.Minv)});
  pin::computeRNEADerivatives(model, data, q_, v_, x_);
  data.M.triangularView<Eigen::StrictlyLower>() = data.M.transpose().triangularView<Eigen::StrictlyLower>();
  write("inverse_derivatives", {dense(data.dtau_dq), dense(data.dtau_dv), dense(data.M)});
}
