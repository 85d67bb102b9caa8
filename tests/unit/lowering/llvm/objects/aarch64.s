.text
.globl _start
_start:
adrp x0, far
add x0, x0, :lo12:far
ldrb w1, [x0, :lo12:far+5]
ldrh w1, [x0, :lo12:far+6]
ldr w1, [x0, :lo12:far+12]
ldr x1, [x0, :lo12:far+40]
ldr q1, [x0, :lo12:far+48]
str q1, [x0, :lo12:far+64]
bl fn
b fn
b.eq near
tbz w1, #3, near
cbnz x2, near
adr x3, near
ldr x4, near
.balign 8
.xword near - .
.word fn - .
.word fn - . + 8
.skip 5000
.skip 3000
.globl near
near: adrp x5, _start
adrp x6, far
ldr w6, [x6, :lo12:far+4]
ret
.skip 3000
.globl fn
fn: b _start
bl near
.section .rodata
.skip 24
.balign 16
.globl far
far: .skip 96
.word near - .
