import Ground
import HTTPRules
import Store

extension NodeSettings {
    /// The settings of answers under this key, if the nodes of a cluster share them; nil if not, or
    /// if this node answers for no such site.
    func sharedPlan(ofKey key: [UInt8]) -> SitePlan? {
        let plan =
            key.first == UInt8(ascii: "/") ? sitePlan(ofKey: key) : images.plan(ofKey: key.span)
        return plan.flatMap { $0.settings.isShared ? $0 : nil }
    }

    /// True if other nodes may have the entry to keep it.
    func sharesWithPeers(_ entry: Resident) -> Bool {
        entry.facts.flags.isAnswer && sharedPlan(ofKey: entry.key) != nil
    }

    private func sitePlan(ofKey key: [UInt8]) -> SitePlan? {
        guard key.starts(with: "//".utf8) else { return nil }
        let host = key.dropFirst(2).prefix { $0 != UInt8(ascii: "/") }
        return sitePlans.first { $0.name.utf8.elementsEqual(host) }
            ?? sitePlans.first(where: \.isForEveryHost)
    }
}
