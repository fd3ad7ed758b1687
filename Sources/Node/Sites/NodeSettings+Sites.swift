import Ground
import HTTPRules
import Store

extension NodeSettings {
    /// The settings of answers under this key, if the nodes of a cluster share them; nil if not, or
    /// if this node answers for no such site.
    func sharedPolicy(ofKey key: [UInt8]) -> SitePolicy? {
        let plan =
            key.first == UInt8(ascii: "/") ? sitePolicy(ofKey: key) : images.policy(ofKey: key.span)
        return plan.flatMap { $0.settings.usesPeers ? $0 : nil }
    }

    /// True if other nodes may have the entry to keep it.
    func sharesWithPeers(_ entry: MemoryEntry) -> Bool {
        entry.metadata.flags.isResponse && sharedPolicy(ofKey: entry.key) != nil
    }

    private func sitePolicy(ofKey key: [UInt8]) -> SitePolicy? {
        guard key.starts(with: "//".utf8) else { return nil }
        let host = key.dropFirst(2).prefix { $0 != UInt8(ascii: "/") }
        return sitePolicies.first { $0.name.utf8.elementsEqual(host) }
            ?? sitePolicies.first(where: \.isForEveryHost)
    }
}
