import Ground
import HTTPRules
import Tiers

extension DiskShareLimits {
    /// What sites and images may take of the disk.
    init(_ settings: NodeSettings) {
        self.init()
        setImageLimit(percent: settings.images.defaultPolicy.settings.diskShare)
        for site in settings.sites.sites {
            if site.pattern == .catchAll {
                setDefaultLimit(percent: site.settings.diskShare)
            } else {
                setHostLimit(Array(site.name.utf8), percent: site.settings.diskShare)
            }
        }
    }
}
