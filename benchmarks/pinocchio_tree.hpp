// A tree from standard input, as text, so that nothing is shared with the prebuilt library.
//
//   njoints
//   parent type ax ay az  R(9, by rows) p(3)  mass c(3) I(xx xy yy xz yz zz)     one line per joint

#pragma once

// (after the headers of Pinocchio that the program itself needs)

#include <iostream>
#include <string>

namespace pin = pinocchio;
using Vector = Eigen::VectorXd;

inline pin::JointModel joint(const std::string & type, const Eigen::Vector3d & axis)
{
  if (type == "JointModelRX") return pin::JointModelRX();
  if (type == "JointModelRY") return pin::JointModelRY();
  if (type == "JointModelRZ") return pin::JointModelRZ();
  if (type == "JointModelPX") return pin::JointModelPX();
  if (type == "JointModelPY") return pin::JointModelPY();
  if (type == "JointModelPZ") return pin::JointModelPZ();
  if (type == "JointModelFreeFlyer") return pin::JointModelFreeFlyer();
  if (type == "JointModelRevoluteUnaligned") return pin::JointModelRevoluteUnaligned(axis);
  if (type == "JointModelPrismaticUnaligned") return pin::JointModelPrismaticUnaligned(axis);
  throw std::invalid_argument("joint type " + type);
}

inline Vector read(int n)
{
  Vector x(n);
  for (int i = 0; i < n; ++i) std::cin >> x[i];
  return x;
}

inline pin::Model read_tree()
{
  pin::Model model;
  int count;
  std::cin >> count;
  for (int i = 0; i < count; ++i)
  {
    int parent;
    std::string type;
    std::cin >> parent >> type;
    const Vector axis = read(3), R = read(9), p = read(3), m = read(1), c = read(3), I = read(6);
    pin::SE3 placement = pin::SE3::Identity();
    placement.rotation() = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(R.data());
    placement.translation() = p;
    Eigen::Matrix3d inertia;
    inertia << I[0], I[1], I[3], I[1], I[2], I[4], I[3], I[4], I[5];
    const auto id = model.addJoint(parent, joint(type, axis), placement, "joint" + std::to_string(i));
    model.appendBodyToJoint(id, pin::Inertia(m[0], c, inertia));
  }
  return model;
}
