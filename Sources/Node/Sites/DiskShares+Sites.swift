import Ground
import HTTPRules
import Tiers

extension DiskShares {
    /// What sites and images may take of the disk.
    init(_ settings: NodeSettings) {
        self.init()
        limitImages(percent: settings.images.others.settings.diskShare)
        for site in settings.sites.sites {
            if site.pattern == .everything {
                limitOthers(percent: site.settings.diskShare)
            } else {
                name(Array(site.name.utf8), percent: site.settings.diskShare)
            }
        }
    }
}
