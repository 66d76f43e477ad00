#include "linear/soft.hpp"

#include <algorithm>
#include <cmath>

namespace rankplane {

double SoftDemand::loss(double r) const {
    const double x = std::fabs(r), u = std::exp(-x);
    return 0.5 * (lo + hi) * r + 0.5 * (hi - lo) * (x + std::log1p(u * u + 2 * std::cosh(e) * u) - e);
}

double SoftDemand::dual(double r) const {
    const double u = std::exp(-std::fabs(r)), bend = 2 * std::cosh(e) * u;
    const double distance = 0.5 * (hi - lo) * (2 * u * u + bend) / (1 + u * u + bend);  // from the nearer end
    return r < 0 ? lo + distance : hi - distance;
}

double SoftDemand::slope(double r) const {
    const double u = std::exp(-std::fabs(r)), bend = 2 * std::cosh(e) * u, whole = 1 + u * u + bend;
    return 0.5 * (hi - lo) * (4 * u * u + bend * (1 + u * u)) / (whole * whole);
}

double SoftDemand::residual(double a) const {
    const double half = 0.5 * (hi - lo);
    if (!(half > 0)) return 0;
    const double distance = std::clamp(std::min(a - lo, hi - a) / half, 1e-16, 1.0), c = std::cosh(e);
    // The positive root of a quadratic equation in exp(|r|).
    const double x =
        std::log(((1 - distance) * c + std::sqrt((1 - distance) * (1 - distance) * c * c + distance * (2 - distance))) / distance);
    return a < 0.5 * (lo + hi) ? -x : x;
}

double SoftDemand::cost(double a) const {
    const double r = residual(a);
    return a * r - loss(r);
}

double SoftDemand::violation(double r, double a) const {
    return hi > lo ? std::fabs(dual(r) - a) / (0.5 * (hi - lo)) : 0.0;
}

double SoftDemand::step(double a, double r, double curvature) const {
    const double target = dual(r) - a;
    double low = std::min(0.0, 1.01 * target), high = std::max(0.0, 1.01 * target), move = 0;
    for (int turn = 0; turn < 60; ++turn) {
        const double at = r - curvature * move, excess = a + move - dual(at);
        if (excess < 0) low = move;
        if (excess > 0) high = move;
        const double newton = move - excess / (1 + curvature * slope(at));
        if (std::fabs(newton - move) <= 1e-6 * std::fabs(newton) + 2e-16 * (hi - lo)) {
            move = std::clamp(newton, low, high);
            break;
        }
        move = newton <= low || newton >= high ? 0.5 * (low + high) : newton;
    }
    return std::clamp(a + move, lo, hi);
}

}  // namespace rankplane
