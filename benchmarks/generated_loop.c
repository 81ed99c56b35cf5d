/* Calls a function that CasADi generated on many states: arrays q (count, nq), v and x (count, nv). */
typedef int (*generated)(const double **, double **, long long *, double *, int);

void run(generated f, const double *q, const double *v, const double *x, long nq, long nv, long count,
         double **results, long long *iw, double *w)
{
  for (long k = 0; k < count; ++k) {
    const double *arguments[3] = {q + k * nq, v + k * nv, x + k * nv};
    double *out[3] = {results[0], results[1], results[2]};
    f(arguments, out, iw, w, 0);
  }
}
