"""What can be wrong, an exception for each kind. Messages are those of the command line: what, where, what to do."""


class BimetalError(Exception):
    """Base of every exception of this package."""


class TraceError(BimetalError, ValueError):
    """A trace that cannot be read, decoded or made of columns."""


class DeviceError(BimetalError, ValueError):
    """A device that is unknown or cannot be."""


class SchemeError(BimetalError, ValueError):
    """A scheme that is unknown, that cannot run on the device, or whose code in Python is wrong."""


class SettingError(BimetalError, ValueError):
    """A setting that nothing has, or a value that it cannot have."""


class WorkloadError(BimetalError, ValueError):
    """A workload that is unknown or cannot be generated."""


class FitError(BimetalError, ValueError):
    """A trace that no generator can be fitted to."""


class PaperError(BimetalError, ValueError):
    """A paper, figure or trace of a paper that is unknown."""


class StudyError(BimetalError, ValueError):
    """A study that cannot be."""


class AdviceError(BimetalError, ValueError):
    """A question for advice that cannot be answered: no goal, no candidate device, wrong prices."""


class ResultsError(BimetalError):
    """A results file that is none, is of another version, is damaged or is in use."""


class DoesNotFitError(BimetalError, ValueError):
    """A trace that touches more than the device holds."""


# `MemoryError` first: it has a `__new__` of its own, which others may call when they unpickle, as `distributed` does.
class InsufficientMemoryError(MemoryError, BimetalError):
    """What would take more memory than there is."""


class BimetalWarning(UserWarning):
    """What to know before trusting a figure."""
