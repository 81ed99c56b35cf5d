// Times Pinocchio's forward and inverse dynamics in a C++ loop, compiled from its headers for this machine.
//
// Reads from standard input a tree (see pinocchio_tree.hpp), then states; writes the best time per call in microseconds
// of each algorithm, and the accelerations of the first state. Derivatives are timed twice: into the same Data for every
// state, and with a copy of each state's matrices into an array for `kept` of them.
//
//   nstates seconds repeats kept, then q v tau of each state

#define EIGEN_DONT_PARALLELIZE
#include <pinocchio/algorithm/aba-derivatives.hpp>
#include <pinocchio/algorithm/aba.hpp>
#include <pinocchio/algorithm/joint-configuration.hpp>
#include <pinocchio/algorithm/rnea-derivatives.hpp>
#include <pinocchio/algorithm/rnea.hpp>

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <iostream>
#include <string>
#include <vector>

#include "pinocchio_tree.hpp"

template <typename Call> static double best(double seconds, int repeats, int states, Call call)
{
  using clock = std::chrono::steady_clock;
  long rounds = 1;
  double least = 1e300;
  for (int repeat = 0; repeat < repeats;)
  {
    const auto start = clock::now();
    for (long r = 0; r < rounds; ++r)
      for (int k = 0; k < states; ++k) call(k);
    const double took = std::chrono::duration<double>(clock::now() - start).count();
    if (took < seconds)
    {
      rounds *= 2;
      continue;
    }
    least = std::min(least, took / (double(rounds) * states));
    ++repeat;
  }
  return 1e6 * least;
}

int main()
{
  const pin::Model model = read_tree();
  pin::Data data(model);
  int states, kept, repeats;
  double seconds;
  std::cin >> states >> seconds >> repeats >> kept;
  std::vector<Vector> q, v, tau;
  for (int k = 0; k < states; ++k)
  {
    q.push_back(read(model.nq));
    v.push_back(read(model.nv));
    tau.push_back(read(model.nv));
  }
  double sum = 0;  // keeps the calls alive
  const double forward = best(seconds, repeats, states, [&](int k) {
    sum += pin::aba(model, data, q[k], v[k], tau[k], pin::Convention::LOCAL)[0];
  });
  const double world = best(seconds, repeats, states, [&](int k) {
    sum += pin::aba(model, data, q[k], v[k], tau[k], pin::Convention::WORLD)[0];
  });
  const double inverse =
    best(seconds, repeats, states, [&](int k) { sum += pin::rnea(model, data, q[k], v[k], tau[k])[0]; });
  double forward_derivatives = 0, inverse_derivatives = 0, forward_kept = 0, inverse_kept = 0;
  if (model.nv <= 100)
  {
    forward_derivatives = best(seconds, repeats, states, [&](int k) {
      pin::computeABADerivatives(model, data, q[k], v[k], tau[k]);
      sum += data.ddq_dq(0, 0);
    });
    inverse_derivatives = best(seconds, repeats, states, [&](int k) {
      pin::computeRNEADerivatives(model, data, q[k], v[k], tau[k]);
      sum += data.dtau_dq(0, 0);
    });
    std::vector<double> array(3 * size_t(kept) * model.nv * model.nv, 0.0);
    int at = 0;
    const auto keep = [&](const auto & x, const auto & y, const auto & z) {
      double * place = array.data() + 3 * size_t(at) * model.nv * model.nv;
      place = std::copy(x.data(), x.data() + x.size(), place);
      place = std::copy(y.data(), y.data() + y.size(), place);
      std::copy(z.data(), z.data() + z.size(), place);
      at = (at + 1) % kept;
    };
    forward_kept = best(seconds, repeats, states, [&](int k) {
      pin::computeABADerivatives(model, data, q[k], v[k], tau[k]);
      keep(data.ddq_dq, data.ddq_dv, data.Minv);
    });
    inverse_kept = best(seconds, repeats, states, [&](int k) {
      pin::computeRNEADerivatives(model, data, q[k], v[k], tau[k]);
      keep(data.dtau_dq, data.dtau_dv, data.M);
    });
    sum += array[0];
  }
  std::cout << std::setprecision(17) << forward << " " << world << " " << inverse << " " << forward_derivatives << " "
            << inverse_derivatives << " " << forward_kept << " " << inverse_kept << " " << sum << "\n";
  std::cout << pin::aba(model, data, q[0], v[0], tau[0]).transpose() << std::endl;
}
