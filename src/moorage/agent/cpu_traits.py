"""Standard traits of what processors can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.agent.facts import Processors
    from moorage.domain.resources import Trait

X86: Final[Mapping[str, Trait]] = {
    "3dnow": "HW_CPU_X86_3DNOW",
    "abm": "HW_CPU_X86_ABM",
    "aes": "HW_CPU_X86_AESNI",
    "amx_bf16": "HW_CPU_X86_AMXBF16",
    "amx_int8": "HW_CPU_X86_AMXINT8",
    "amx_tile": "HW_CPU_X86_AMXTILE",
    "avx": "HW_CPU_X86_AVX",
    "avx2": "HW_CPU_X86_AVX2",
    "avx512_vbmi2": "HW_CPU_X86_AVX512VBMI2",
    "avx512_bitalg": "HW_CPU_X86_AVX512BITALG",
    "avx512_vnni": "HW_CPU_X86_AVX512VNNI",
    "avx512_vpopcntdq": "HW_CPU_X86_AVX512VPOPCNTDQ",
    "avx512bw": "HW_CPU_X86_AVX512BW",
    "avx512cd": "HW_CPU_X86_AVX512CD",
    "avx512dq": "HW_CPU_X86_AVX512DQ",
    "avx512er": "HW_CPU_X86_AVX512ER",
    "avx512f": "HW_CPU_X86_AVX512F",
    "avx512ifma": "HW_CPU_X86_AVX512IFMA",
    "avx512pf": "HW_CPU_X86_AVX512PF",
    "avx512vbmi": "HW_CPU_X86_AVX512VBMI",
    "avx512vl": "HW_CPU_X86_AVX512VL",
    "bmi1": "HW_CPU_X86_BMI",
    "bmi2": "HW_CPU_X86_BMI2",
    "f16c": "HW_CPU_X86_F16C",
    "fma": "HW_CPU_X86_FMA3",
    "fma4": "HW_CPU_X86_FMA4",
    "mmx": "HW_CPU_X86_MMX",
    "mpx": "HW_CPU_X86_MPX",
    "pclmulqdq": "HW_CPU_X86_CLMUL",
    "pcid": "HW_CPU_X86_INTEL_PCID",
    "pdpe1gb": "HW_CPU_X86_PDPE1GB",
    "pni": "HW_CPU_X86_SSE3",
    "rtm": "HW_CPU_X86_TSX",
    "sgx": "HW_CPU_X86_SGX",
    "sha_ni": "HW_CPU_X86_SHA",
    "sse": "HW_CPU_X86_SSE",
    "sse2": "HW_CPU_X86_SSE2",
    "sse4_1": "HW_CPU_X86_SSE41",
    "sse4_2": "HW_CPU_X86_SSE42",
    "sse4a": "HW_CPU_X86_SSE4A",
    "ssse3": "HW_CPU_X86_SSSE3",
    "stibp": "HW_CPU_X86_STIBP",
    "svm": "HW_CPU_X86_AMD_SVM",
    "tbm": "HW_CPU_X86_TBM",
    "vmx": "HW_CPU_X86_VMX",
    "xop": "HW_CPU_X86_XOP",
}
"""The kernel's flags -> traits."""

AARCH64: Final[Mapping[str, Trait]] = {
    flag: f"HW_CPU_AARCH64_{flag.upper()}"
    for flag in (
        *("fp", "asimd", "evtstrm", "aes", "pmull", "sha1", "sha2", "crc32", "atomics", "fphp"),
        *("asimdhp", "asimdrdm", "jscvt", "fcma", "lrcpc", "dcpop", "sha3", "sm3", "sm4"),
        *("asimddp", "sha512", "sve", "cpuid"),
    )
}

_OF_ARCHITECTURE: Final = {
    "x86_64": (X86, "HW_ARCH_X86_64"),
    "aarch64": (AARCH64, "HW_ARCH_AARCH64"),
}


def traits_of(processors: Processors) -> frozenset[Trait]:
    """The traits of all processors; flags without a standard trait are left out."""
    if processors.architecture not in _OF_ARCHITECTURE:
        return frozenset()
    known, architecture = _OF_ARCHITECTURE[processors.architecture]
    threads = {"HW_CPU_HYPERTHREADING"} if processors.hyperthreading else set()
    return frozenset({known[flag] for flag in processors.flags & known.keys()} | threads) | {
        architecture
    }
