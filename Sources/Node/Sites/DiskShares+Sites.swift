import Ground
import HTTPRules
import Tiers

extension DiskShares {
    /// What these sites may take of the disk.
    init(_ sites: SiteTable) {
        self.init()
        for site in sites.sites {
            if site.pattern == .everything {
                limitOthers(percent: site.settings.diskShare)
            } else {
                name(Array(site.name.utf8), percent: site.settings.diskShare)
            }
        }
    }
}
