/* The functions of FMI 2 and 3 on the functions of one model. Every number of an instance is in `r`:
 * time, q, v, x, q', v', x', inputs, parameters, outputs; a value reference is a place in it. What sampled laws and sensors
 * remember, and the rows by which loops are kept, is in `d`, its last number that of the next tick of their clock. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(_WIN32)
#define EXPORT __declspec(dllexport)
#else
#define EXPORT __attribute__((visibility("default")))
#endif

enum {
  AT_Q = 1,
  AT_V = AT_Q + NQ,
  AT_X = AT_V + NV,
  AT_RATE = AT_X + NX,
  AT_A = AT_RATE + NQ,
  AT_XR = AT_A + NV,
  AT_U = AT_XR + NX,
  AT_P = AT_U + NU,
  AT_Y = AT_P + NP,
  COUNT = AT_Y + NY,
  NS = NQ + NV + NX
};
enum { OK = 0, WARNING = 1, DISCARD = 2, FAILED = 3 };

typedef struct {
  double r[COUNT + 1];
  double d[ND + 1];
  double origin;
  int stale;
} Instance;

static void restart(Instance *m)
{
  memcpy(m->r, STARTS, COUNT * sizeof(double));
  memcpy(m->d, MEMORY, sizeof(m->d));
  m->origin = 0.0;
  m->stale = 1;
}

static Instance *instance_new(void)
{
  Instance *m = (Instance *)calloc(1, sizeof(Instance));
  if (m != NULL) {
    restart(m);
  }
  return m;
}

static int same_token(const char *token)
{
  return token != NULL && strcmp(token, "@TOKEN@") == 0;
}

static void evaluate(Instance *m)
{
  double *r = m->r;
  if (!m->stale) {
    return;
  }
  MODEL_derivatives(m->d, r);
  MODEL_outputs(m->d, r);
  m->stale = 0;
}

static int get(Instance *m, const unsigned int *vr, size_t n, double *value)
{
  size_t k;
  for (k = 0; k < n; ++k) {
    if (vr[k] >= (unsigned int)COUNT) {
      return FAILED;
    }
    if (vr[k] >= AT_RATE && (vr[k] < AT_U || vr[k] >= AT_Y)) {
      evaluate(m);
    }
    value[k] = m->r[vr[k]];
  }
  return OK;
}

static int set(Instance *m, const unsigned int *vr, size_t n, const double *value)
{
  size_t k;
  for (k = 0; k < n; ++k) {
    if (vr[k] == 0 || vr[k] >= AT_Y || (vr[k] >= AT_RATE && vr[k] < AT_U)) {
      return FAILED;
    }
    m->r[vr[k]] = value[k];
  }
  m->stale = 1;
  return OK;
}

static int all_finite(const Instance *m)
{
  int k;
  for (k = AT_Q; k < AT_RATE; ++k) {
    if (!isfinite(m->r[k])) {
      return 0;
    }
  }
  return 1;
}

/* Close loops again; whether that is possible. */
static int settle(Instance *m)
{
#if ROWS
  MODEL_settle(m->d, m->r);
  m->stale = 1;
#endif
  return all_finite(m);
}

/* Whether loops have opened more than rounding on the way. */
static int opened(const Instance *m)
{
#if ROWS
  Instance other = *m;
  int k;
  if (!settle(&other)) {
    return 1;
  }
  for (k = AT_Q; k < AT_RATE; ++k) {
    if (fabs(other.r[k] - m->r[k]) > 1e-9 * (1.0 + fabs(m->r[k]))) {
      return 1;
    }
  }
#else
  (void)m;
#endif
  return 0;
}

static double next_tick(const Instance *m)
{
  return m->origin + m->d[ND > 0 ? ND - 1 : 0] * TICK;
}

/* What sampled laws and sensors do up to now. */
static void instants(Instance *m, double now)
{
#if TICKS
  while (next_tick(m) <= now + 1e-9 * TICK) {
    MODEL_instant(m->d, m->r);
    m->stale = 1;
  }
#else
  (void)m;
  (void)now;
#endif
}

static int begin(Instance *m, double start)
{
  m->r[0] = start;
  m->origin = start;
  m->stale = 1;
  return OK;
}

static int advance(Instance *m, double start, double length)
{
  const double end = start + length;
  double from = start;
  m->r[0] = start;
  instants(m, start);
  while (from < end) {
    const double tick = TICKS ? next_tick(m) : end;
    const double until = tick < end - 1e-9 * STEP ? tick : end;
    const double steps = ceil((until - from) / STEP - 1e-9);
    const double count = steps < 1.0 ? 1.0 : steps;
    const double h = (until - from) / count;
    double k;
    for (k = 0.0; k < count; k += 1.0) {
      const double t = from + k * h;
      MODEL_step(&t, &h, m->d, m->r);
    }
    from = until;
    m->r[0] = until;
    if (until < end) {
      instants(m, until);
    }
  }
  m->stale = 1;
  return all_finite(m) ? OK : FAILED;
}

/* The change of unknowns for one of knowns: a tangent of everything at once. */
static int directional(Instance *m, const unsigned int *unknown, size_t nu, const unsigned int *known, size_t nk,
                       const double *seed, size_t seeds, double *change)
{
  double d[COUNT + 1];
  double *r = m->r;
  size_t k;
  memset(d, 0, sizeof(d));
  if (seeds != nk) {
    return FAILED;
  }
  for (k = 0; k < nk; ++k) {
    if (known[k] >= AT_Y || (known[k] >= AT_RATE && known[k] < AT_U)) {
      return FAILED;
    }
    d[known[k]] += seed[k];
  }
  MODEL_tangent(m->d, r, d);
  for (k = 0; k < nu; ++k) {
    if (unknown[k] >= (unsigned int)COUNT) {
      return FAILED;
    }
    change[k] = d[unknown[k]];
  }
  return OK;
}

static int state_save(Instance *m, void **state)
{
  if (*state == NULL) {
    *state = malloc(sizeof(Instance));
  }
  if (*state == NULL) {
    return FAILED;
  }
  memcpy(*state, m, sizeof(Instance));
  return OK;
}

/* --- FMI 2 --------------------------------------------------------------------------------------------------------- */

typedef struct {
  int newDiscreteStatesNeeded, terminateSimulation, nominalsOfContinuousStatesChanged, valuesOfContinuousStatesChanged,
      nextEventTimeDefined;
  double nextEventTime;
} EventInfo2;

#define M ((Instance *)c)
#define UNUSED(x) (void)(x)

EXPORT const char *fmi2GetTypesPlatform(void) { return "default"; }
EXPORT const char *fmi2GetVersion(void) { return "2.0"; }
EXPORT int fmi2SetDebugLogging(void *c, int on, size_t n, const char *const names[])
{ UNUSED(c); UNUSED(on); UNUSED(n); UNUSED(names); return OK; }
EXPORT void *fmi2Instantiate(const char *name, int type, const char *guid, const char *resources, const void *callbacks,
                             int visible, int logging)
{
  UNUSED(name); UNUSED(type); UNUSED(resources); UNUSED(callbacks); UNUSED(visible); UNUSED(logging);
  return same_token(guid) ? instance_new() : NULL;
}
EXPORT void fmi2FreeInstance(void *c) { free(c); }
EXPORT int fmi2SetupExperiment(void *c, int tolerance_defined, double tolerance, double start, int stop_defined, double stop)
{ UNUSED(tolerance_defined); UNUSED(tolerance); UNUSED(stop_defined); UNUSED(stop); return begin(M, start); }
EXPORT int fmi2EnterInitializationMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi2ExitInitializationMode(void *c) { return settle(M) ? OK : FAILED; }
EXPORT int fmi2Terminate(void *c) { UNUSED(c); return OK; }
EXPORT int fmi2Reset(void *c) { restart(M); return OK; }
EXPORT int fmi2GetReal(void *c, const unsigned int *vr, size_t n, double *x) { return get(M, vr, n, x); }
EXPORT int fmi2SetReal(void *c, const unsigned int *vr, size_t n, const double *x) { return set(M, vr, n, x); }
EXPORT int fmi2GetInteger(void *c, const unsigned int *vr, size_t n, int *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2GetBoolean(void *c, const unsigned int *vr, size_t n, int *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2GetString(void *c, const unsigned int *vr, size_t n, const char **x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2SetInteger(void *c, const unsigned int *vr, size_t n, const int *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2SetBoolean(void *c, const unsigned int *vr, size_t n, const int *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2SetString(void *c, const unsigned int *vr, size_t n, const char *const *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2GetFMUstate(void *c, void **s) { return state_save(M, s); }
EXPORT int fmi2SetFMUstate(void *c, void *s) { if (s == NULL) { return FAILED; } memcpy(c, s, sizeof(Instance)); return OK; }
EXPORT int fmi2FreeFMUstate(void *c, void **s) { UNUSED(c); free(*s); *s = NULL; return OK; }
EXPORT int fmi2SerializedFMUstateSize(void *c, void *s, size_t *n) { UNUSED(c); UNUSED(s); *n = sizeof(Instance); return OK; }
EXPORT int fmi2SerializeFMUstate(void *c, void *s, char *bytes, size_t n)
{ UNUSED(c); if (n < sizeof(Instance)) { return FAILED; } memcpy(bytes, s, sizeof(Instance)); return OK; }
EXPORT int fmi2DeSerializeFMUstate(void *c, const char *bytes, size_t n, void **s)
{
  UNUSED(c);
  if (n != sizeof(Instance)) { return FAILED; }
  if (*s == NULL) { *s = malloc(sizeof(Instance)); }
  if (*s == NULL) { return FAILED; }
  memcpy(*s, bytes, sizeof(Instance));
  return OK;
}
EXPORT int fmi2GetDirectionalDerivative(void *c, const unsigned int *unknown, size_t nu, const unsigned int *known, size_t nk,
                                        const double *seed, double *change)
{ return directional(M, unknown, nu, known, nk, seed, nk, change); }
EXPORT int fmi2EnterEventMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi2NewDiscreteStates(void *c, EventInfo2 *e)
{
  memset(e, 0, sizeof(*e));
  instants(M, M->r[0]);
  e->valuesOfContinuousStatesChanged = ROWS > 0;
  e->nextEventTimeDefined = TICKS;
  e->nextEventTime = next_tick(M);
  return settle(M) ? OK : FAILED;
}
EXPORT int fmi2EnterContinuousTimeMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi2CompletedIntegratorStep(void *c, int keep, int *enter, int *terminate)
{ UNUSED(keep); *enter = opened(M); *terminate = 0; return OK; }
EXPORT int fmi2SetTime(void *c, double t) { M->r[0] = t; M->stale = 1; return OK; }
EXPORT int fmi2SetContinuousStates(void *c, const double *x, size_t n)
{ if (n != NS) { return FAILED; } memcpy(M->r + AT_Q, x, n * sizeof(double)); M->stale = 1; return OK; }
EXPORT int fmi2GetDerivatives(void *c, double *x, size_t n)
{
  if (n != NS) { return FAILED; }
  evaluate(M);
  memcpy(x, M->r + AT_RATE, n * sizeof(double));
  return OK;
}
EXPORT int fmi2GetEventIndicators(void *c, double *x, size_t n) { UNUSED(c); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2GetContinuousStates(void *c, double *x, size_t n)
{ if (n != NS) { return FAILED; } memcpy(x, M->r + AT_Q, n * sizeof(double)); return OK; }
EXPORT int fmi2GetNominalsOfContinuousStates(void *c, double *x, size_t n)
{ size_t k; UNUSED(c); for (k = 0; k < n; ++k) { x[k] = 1.0; } return OK; }
EXPORT int fmi2SetRealInputDerivatives(void *c, const unsigned int *vr, size_t n, const int *order, const double *x)
{ UNUSED(c); UNUSED(vr); UNUSED(order); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2GetRealOutputDerivatives(void *c, const unsigned int *vr, size_t n, const int *order, double *x)
{ UNUSED(c); UNUSED(vr); UNUSED(order); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi2DoStep(void *c, double t, double h, int no_set)
{ UNUSED(no_set); return h > 0.0 ? advance(M, t, h) : (h == 0.0 ? OK : FAILED); }
EXPORT int fmi2CancelStep(void *c) { UNUSED(c); return FAILED; }
EXPORT int fmi2GetStatus(void *c, int kind, int *x) { UNUSED(c); UNUSED(kind); UNUSED(x); return DISCARD; }
EXPORT int fmi2GetRealStatus(void *c, int kind, double *x) { if (kind == 2) { *x = M->r[0]; return OK; } return DISCARD; }
EXPORT int fmi2GetIntegerStatus(void *c, int kind, int *x) { UNUSED(c); UNUSED(kind); UNUSED(x); return DISCARD; }
EXPORT int fmi2GetBooleanStatus(void *c, int kind, int *x) { UNUSED(c); UNUSED(kind); *x = 0; return DISCARD; }
EXPORT int fmi2GetStringStatus(void *c, int kind, const char **x) { UNUSED(c); UNUSED(kind); UNUSED(x); return DISCARD; }

/* --- FMI 3 --------------------------------------------------------------------------------------------------------- */

typedef _Bool Flag;

EXPORT const char *fmi3GetVersion(void) { return "3.0"; }
EXPORT int fmi3SetDebugLogging(void *c, Flag on, size_t n, const char *const names[])
{ UNUSED(c); UNUSED(on); UNUSED(n); UNUSED(names); return OK; }
EXPORT void *fmi3InstantiateModelExchange(const char *name, const char *token, const char *resources, Flag visible, Flag logging,
                                          void *environment, void *log)
{
  UNUSED(name); UNUSED(resources); UNUSED(visible); UNUSED(logging); UNUSED(environment); UNUSED(log);
  return same_token(token) ? instance_new() : NULL;
}
EXPORT void *fmi3InstantiateCoSimulation(const char *name, const char *token, const char *resources, Flag visible, Flag logging,
                                         Flag event_mode, Flag early_return, const unsigned int *required, size_t n,
                                         void *environment, void *log, void *intermediate)
{
  UNUSED(name); UNUSED(resources); UNUSED(visible); UNUSED(logging); UNUSED(event_mode); UNUSED(early_return);
  UNUSED(required); UNUSED(n); UNUSED(environment); UNUSED(log); UNUSED(intermediate);
  return same_token(token) ? instance_new() : NULL;
}
EXPORT void *fmi3InstantiateScheduledExecution(const char *name, const char *token, const char *resources, Flag visible,
                                               Flag logging, void *environment, void *log, void *clock, void *lock, void *unlock)
{
  UNUSED(name); UNUSED(token); UNUSED(resources); UNUSED(visible); UNUSED(logging); UNUSED(environment);
  UNUSED(log); UNUSED(clock); UNUSED(lock); UNUSED(unlock);
  return NULL;
}
EXPORT void fmi3FreeInstance(void *c) { free(c); }
EXPORT int fmi3EnterInitializationMode(void *c, Flag tolerance_defined, double tolerance, double start, Flag stop_defined, double stop)
{ UNUSED(tolerance_defined); UNUSED(tolerance); UNUSED(stop_defined); UNUSED(stop); return begin(M, start); }
EXPORT int fmi3ExitInitializationMode(void *c) { return settle(M) ? OK : FAILED; }
EXPORT int fmi3EnterEventMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3Terminate(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3Reset(void *c) { return fmi2Reset(c); }
EXPORT int fmi3GetFloat64(void *c, const unsigned int *vr, size_t n, double *x, size_t values)
{ return values == n ? get(M, vr, n, x) : FAILED; }
EXPORT int fmi3SetFloat64(void *c, const unsigned int *vr, size_t n, const double *x, size_t values)
{ return values == n ? set(M, vr, n, x) : FAILED; }
#define NONE(name, type) \
  EXPORT int fmi3Get##name(void *c, const unsigned int *vr, size_t n, type *x, size_t values) \
  { UNUSED(c); UNUSED(vr); UNUSED(x); UNUSED(values); return n ? FAILED : OK; } \
  EXPORT int fmi3Set##name(void *c, const unsigned int *vr, size_t n, const type *x, size_t values) \
  { UNUSED(c); UNUSED(vr); UNUSED(x); UNUSED(values); return n ? FAILED : OK; }
NONE(Float32, float)
NONE(Int8, int8_t)
NONE(UInt8, uint8_t)
NONE(Int16, int16_t)
NONE(UInt16, uint16_t)
NONE(Int32, int32_t)
NONE(UInt32, uint32_t)
NONE(Int64, int64_t)
NONE(UInt64, uint64_t)
NONE(Boolean, Flag)
NONE(String, char *)
EXPORT int fmi3GetBinary(void *c, const unsigned int *vr, size_t n, size_t *sizes, const uint8_t **x, size_t values)
{ UNUSED(c); UNUSED(vr); UNUSED(sizes); UNUSED(x); UNUSED(values); return n ? FAILED : OK; }
EXPORT int fmi3SetBinary(void *c, const unsigned int *vr, size_t n, const size_t *sizes, const uint8_t *const *x, size_t values)
{ UNUSED(c); UNUSED(vr); UNUSED(sizes); UNUSED(x); UNUSED(values); return n ? FAILED : OK; }
EXPORT int fmi3GetClock(void *c, const unsigned int *vr, size_t n, Flag *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi3SetClock(void *c, const unsigned int *vr, size_t n, const Flag *x) { UNUSED(c); UNUSED(vr); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi3GetNumberOfVariableDependencies(void *c, unsigned int vr, size_t *n) { UNUSED(c); UNUSED(vr); UNUSED(n); return FAILED; }
EXPORT int fmi3GetVariableDependencies(void *c, unsigned int vr, size_t *a, unsigned int *b, size_t *d, int *e, size_t n)
{ UNUSED(c); UNUSED(vr); UNUSED(a); UNUSED(b); UNUSED(d); UNUSED(e); UNUSED(n); return FAILED; }
EXPORT int fmi3GetFMUState(void *c, void **s) { return state_save(M, s); }
EXPORT int fmi3SetFMUState(void *c, void *s) { return fmi2SetFMUstate(c, s); }
EXPORT int fmi3FreeFMUState(void *c, void **s) { return fmi2FreeFMUstate(c, s); }
EXPORT int fmi3SerializedFMUStateSize(void *c, void *s, size_t *n) { return fmi2SerializedFMUstateSize(c, s, n); }
EXPORT int fmi3SerializeFMUState(void *c, void *s, uint8_t *bytes, size_t n) { return fmi2SerializeFMUstate(c, s, (char *)bytes, n); }
EXPORT int fmi3DeserializeFMUState(void *c, const uint8_t *bytes, size_t n, void **s)
{ return fmi2DeSerializeFMUstate(c, (const char *)bytes, n, s); }
EXPORT int fmi3GetDirectionalDerivative(void *c, const unsigned int *unknown, size_t nu, const unsigned int *known, size_t nk,
                                        const double *seed, size_t seeds, double *change, size_t changes)
{ return changes == nu ? directional(M, unknown, nu, known, nk, seed, seeds, change) : FAILED; }
EXPORT int fmi3GetAdjointDerivative(void *c, const unsigned int *unknown, size_t nu, const unsigned int *known, size_t nk,
                                    const double *seed, size_t seeds, double *change, size_t changes)
{
  UNUSED(c); UNUSED(unknown); UNUSED(nu); UNUSED(known); UNUSED(nk); UNUSED(seed); UNUSED(seeds); UNUSED(change); UNUSED(changes);
  return FAILED;
}
EXPORT int fmi3EnterConfigurationMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3ExitConfigurationMode(void *c) { UNUSED(c); return OK; }
#define NO_CLOCKS(name) \
  EXPORT int name(void *c, const unsigned int *vr, size_t n, void *a, void *b, void *d) \
  { UNUSED(c); UNUSED(vr); UNUSED(a); UNUSED(b); UNUSED(d); return n ? FAILED : OK; }
NO_CLOCKS(fmi3GetIntervalDecimal)
NO_CLOCKS(fmi3GetIntervalFraction)
NO_CLOCKS(fmi3GetShiftDecimal)
NO_CLOCKS(fmi3GetShiftFraction)
NO_CLOCKS(fmi3SetIntervalDecimal)
NO_CLOCKS(fmi3SetIntervalFraction)
NO_CLOCKS(fmi3SetShiftDecimal)
NO_CLOCKS(fmi3SetShiftFraction)
EXPORT int fmi3EvaluateDiscreteStates(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3UpdateDiscreteStates(void *c, Flag *again, Flag *terminate, Flag *nominals, Flag *values, Flag *defined, double *next)
{
  EventInfo2 e;
  const int status = fmi2NewDiscreteStates(c, &e);
  *again = 0; *terminate = 0; *nominals = 0;
  *values = e.valuesOfContinuousStatesChanged != 0; *defined = e.nextEventTimeDefined != 0; *next = e.nextEventTime;
  return status;
}
EXPORT int fmi3EnterContinuousTimeMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3CompletedIntegratorStep(void *c, Flag keep, Flag *enter, Flag *terminate)
{ UNUSED(keep); *enter = opened(M); *terminate = 0; return OK; }
EXPORT int fmi3SetTime(void *c, double t) { return fmi2SetTime(c, t); }
EXPORT int fmi3SetContinuousStates(void *c, const double *x, size_t n) { return fmi2SetContinuousStates(c, x, n); }
EXPORT int fmi3GetContinuousStateDerivatives(void *c, double *x, size_t n) { return fmi2GetDerivatives(c, x, n); }
EXPORT int fmi3GetEventIndicators(void *c, double *x, size_t n) { UNUSED(c); UNUSED(x); return n ? FAILED : OK; }
EXPORT int fmi3GetContinuousStates(void *c, double *x, size_t n) { return fmi2GetContinuousStates(c, x, n); }
EXPORT int fmi3GetNominalsOfContinuousStates(void *c, double *x, size_t n) { return fmi2GetNominalsOfContinuousStates(c, x, n); }
EXPORT int fmi3GetNumberOfEventIndicators(void *c, size_t *n) { UNUSED(c); *n = 0; return OK; }
EXPORT int fmi3GetNumberOfContinuousStates(void *c, size_t *n) { UNUSED(c); *n = NS; return OK; }
EXPORT int fmi3EnterStepMode(void *c) { UNUSED(c); return OK; }
EXPORT int fmi3GetOutputDerivatives(void *c, const unsigned int *vr, size_t n, const int32_t *order, double *x, size_t values)
{ UNUSED(c); UNUSED(vr); UNUSED(order); UNUSED(x); UNUSED(values); return n ? FAILED : OK; }
EXPORT int fmi3DoStep(void *c, double t, double h, Flag no_set, Flag *event, Flag *terminate, Flag *early, double *last)
{
  const int status = h > 0.0 ? advance(M, t, h) : FAILED;
  UNUSED(no_set);
  *event = 0; *terminate = 0; *early = 0; *last = M->r[0];
  return status;
}
EXPORT int fmi3ActivateModelPartition(void *c, unsigned int clock, double t) { UNUSED(c); UNUSED(clock); UNUSED(t); return FAILED; }
