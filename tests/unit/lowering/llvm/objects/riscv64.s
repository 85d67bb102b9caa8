.option norelax
.text
.globl _start
_start:
.Lh: auipc a0, %pcrel_hi(far)
addi a0, a0, %pcrel_lo(.Lh)
.Lh2: auipc a1, %pcrel_hi(far+48)
lw a2, %pcrel_lo(.Lh2)(a1)
sd a2, %pcrel_lo(.Lh2)(a1)
sb a2, %pcrel_lo(.Lh2)(a1)
.Lh3: auipc a1, %pcrel_hi(low)
ld a2, %pcrel_lo(.Lh3)(a1)
sd a2, %pcrel_lo(.Lh3)(a1)
call fn
tail fn
beq a0, a1, near
bltu a5, a6, back
jal near
jal back
.option rvc
c.beqz a0, close
c.bnez a1, _start
c.j close
c.j _start
.option norvc
.skip 100
.globl close
close: 
ret
.globl back
back: ret
.skip 3000
.globl near
near: bne a0, a1, close
jal _start
call back
ret
.skip 300000
.globl fn
fn: jal back
call _start
.section .rodata
.skip 24
.balign 16
.globl low
low: .skip 2200
.globl far
far: .skip 96
.word fn - near
.dword far - near
.half low - far
.byte 0
.balign 4
.word near - .
