.text
.globl _start
_start:
lea far(%rip), %rax
movaps far+16(%rip), %xmm0
movl $7, far+4(%rip)
call fn
jmp fn
jne near
call near@PLT
.quad far - .
.skip 5000
.globl near
near: ret
.skip 3000
.globl fn
fn: jmp _start
call near
.section .rodata
.skip 24
.balign 16
.globl far
far: .skip 96
.long near - .
