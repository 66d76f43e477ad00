// Soft demands: the logistic loss and its relatives.
//
// A demand (lo, hi, t, e) with m = (lo + hi) / 2 and h = (hi - lo) / 2 costs, at residual r = t - z,
//
//     hard    L(r) = m r + h (max(0, r - e) + max(0, -r - e))
//     soft    L(r) = m r + h (log(1 + exp(r - e)) + log(1 + exp(-r - e)))
//
// where each max(0, x) has become log(1 + exp(x)). With lo = e = 0 that is hi log(1 + exp(r)), the logistic loss. The dual at r is
// the slope of L, and the function of a that replaces e |a| in the dual problem is the conjugate of L:
//
//     a(r) = m + h sinh r / (cosh r + cosh e)        cost(a) = a r(a) - L(r(a))
//
// Out of line, since the loops of all instruction sets call these.
#pragma once

namespace rankplane {

// With bounds that are already scaled by the weight of the row.
struct SoftDemand {
    double lo, hi, e;

    double loss(double r) const;
    double dual(double r) const;
    double slope(double r) const;     // of the dual
    double residual(double a) const;  // at which the dual is a; bounded at the ends of [lo, hi]
    double cost(double a) const;
    double violation(double r, double a) const;  // how far the dual is from that at r, as a share of half the box
    // The minimum over a' in [lo, hi] of  1/2 A (a' - a)^2 - r (a' - a) + cost(a').
    double step(double a, double r, double curvature) const;
};

}  // namespace rankplane
