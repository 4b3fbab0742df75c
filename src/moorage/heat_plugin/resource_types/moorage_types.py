"""Types of resources for Heat's `plugin_dirs`; Heat imports this file by its path.

If the plug-in cannot be loaded, this fails, and heat-engine does not start: no stack acts unasked
because of a broken installation.
"""

from moorage.heat_plugin import ensemble_resources, lifecycle, scaling

scaling.install()
__all__ = ["lifecycle", "resource_mapping"]


def resource_mapping() -> dict[str, type]:
    """Type -> class, beside and instead of Heat's own."""
    return {
        "OS::Moorage::Ensemble": ensemble_resources.Ensemble,
        "OS::Moorage::Lease": ensemble_resources.Lease,
        "OS::Heat::AutoScalingGroup": scaling.AutoScalingResourceGroup,
        "AWS::AutoScaling::AutoScalingGroup": scaling.AutoScalingGroup,
    }
