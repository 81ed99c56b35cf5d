"""IR that sets memory to zero."""

from __future__ import annotations


def zero_function(name: str, count: int) -> str:
    """IR of `void NAME(ptr)`, which sets so many doubles to zero: whole registers, then the rest."""
    rest = []
    for k in range(count - count % 8, count):
        rest += [f"%p{k} = getelementptr double, ptr %x, i64 {k}", f"store double 0.0, ptr %p{k}"]
    rest_text = "\n  ".join(rest)
    return f"""\
define internal void @{name}(ptr %x) noinline #0 {{
entry:
  {rest_text}
  br label %test
test:
  %k = phi i64 [0, %entry], [%next, %body]
  %more = icmp ult i64 %k, {count - count % 8}
  br i1 %more, label %body, label %done
body:
  %p = getelementptr double, ptr %x, i64 %k
  store <8 x double> zeroinitializer, ptr %p, align 8
  %next = add i64 %k, 8
  br label %test
done:
  ret void
}}
"""
