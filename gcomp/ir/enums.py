"""Attributes that are one word out of a few. Their value is the word: `ComparisonDirectionAttr("LT")`."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import Data, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


class WordAttr(Data[str]):
    """One of `words`. VerifyException for any other."""

    words: ClassVar[tuple[str, ...]]

    @classmethod
    def parse_word(cls, parser: AttrParser) -> str:
        """Parse one of the words."""
        position = parser.pos
        word = parser.parse_identifier()
        if word not in cls.words:
            parser.raise_error(f"expected one of {', '.join(cls.words)}", position, parser.pos)
        return word

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        return cls.parse_word(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(self.data)

    def verify(self) -> None:
        if self.data not in self.words:
            raise VerifyException(f"{self.data!r} is none of {', '.join(self.words)}")


@irdl_attr_definition
class ComparisonDirectionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.comparison_direction"
    words = ("EQ", "NE", "GE", "GT", "LE", "LT")


@irdl_attr_definition
class ComparisonTypeAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.comparison_type"
    words = ("NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")


@irdl_attr_definition
class PrecisionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.precision"
    words = ("DEFAULT", "HIGH", "HIGHEST")


@irdl_attr_definition
class FftTypeAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.fft_type"
    words = ("FFT", "IFFT", "RFFT", "IRFFT")


@irdl_attr_definition
class TransposeAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.transpose"
    words = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


@irdl_attr_definition
class RngDistributionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.rng_distribution"
    words = ("UNIFORM", "NORMAL")


@irdl_attr_definition
class RngAlgorithmAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "stablehlo.rng_algorithm"
    words = ("DEFAULT", "THREE_FRY", "PHILOX")


@irdl_attr_definition
class AccuracyModeAttr(WordAttr):
    """`#stablehlo.result_accuracy_mode<DEFAULT>`."""

    name = "stablehlo.result_accuracy_mode"
    words = ("DEFAULT", "HIGHEST", "TOLERANCE")

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return cls.parse_word(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")


@irdl_attr_definition
class ChloComparisonDirectionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "chlo.comparison_direction"
    words = ComparisonDirectionAttr.words


@irdl_attr_definition
class ChloComparisonTypeAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "chlo.comparison_type"
    words = ComparisonTypeAttr.words


@irdl_attr_definition
class ChloPrecisionAttr(WordAttr, SpacedOpaqueSyntaxAttribute):
    name = "chlo.precision"
    words = PrecisionAttr.words
