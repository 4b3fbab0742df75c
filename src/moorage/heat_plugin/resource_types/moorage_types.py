"""Types of resources for Heat's `plugin_dirs`; Heat imports this file by its path.

If the plug-in cannot be loaded, this fails, and heat-engine does not start: no stack acts unasked
because of a broken installation.
"""

from moorage.heat_plugin import lifecycle, scaling

scaling.install()
__all__ = ["lifecycle", "resource_mapping"]


def resource_mapping() -> dict[str, type]:
    """Type -> class, beside and instead of Heat's own."""
    return {
        "OS::Heat::AutoScalingGroup": scaling.AutoScalingResourceGroup,
        "AWS::AutoScaling::AutoScalingGroup": scaling.AutoScalingGroup,
    }
