import Ground
import HTTPRules
import Serving
import Store

// Conversion of site settings into rules.

extension StoragePolicy {
    /// Creates the storage rules of a site.
    init(_ settings: SiteSettings) {
        var freshness = FreshnessPolicy(defaultTTL: settings.defaultTTL)
        freshness.ttlMax = settings.ttlMax
        freshness.ignoresCredentials = settings.ignoresCredentials
        freshness.negativeTTLs = settings.negativeTTLs.map {
            FreshnessPolicy.NegativeTTL(status: $0.status, ttl: $0.ttl)
        }
        self = .site(freshness: freshness, storesSetCookie: settings.storesSetCookie)
    }
}

extension ReusePolicy {
    /// Creates the reuse rules of a site.
    init(_ settings: SiteSettings) {
        self.init()
        (grace, fencedGrace) = (settings.grace, settings.grace)
    }
}

extension RequestFieldRules {
    /// Creates the rules for requests to a site's origin.
    init(_ site: Site) {
        self.init(
            site.settings, authority: Array(site.origin.authority.utf8),
            basePath: Array(site.origin.path.utf8))
    }

    /// Creates the rules for requests to origins; `authority` is empty if each request names its
    /// own.
    init(_ settings: SiteSettings, authority: [UInt8] = [], basePath: [UInt8] = []) {
        self.init(authority: authority, basePath: basePath)
        host =
            switch settings.originHostRule {
            case .origin: .origin
            case .client: .client
            case .name(let name): .fixed(Array(name.utf8))
            }
        forwarded =
            switch settings.forwardedFor {
            case .append: .added
            case .replace: .replaced
            case .off: .unchanged
            }
        forwardedNames = settings.forwardedFields
        forwardsOthers = settings.forwardsOthers
        forwardsTrailers = settings.forwardsTrailers
        removed = settings.removedRequestFields
        overriddenLines = settings.overriddenRequestFields.compactMap {
            FieldSetting(name: $0.name, value: $0.value)
        }
        addsVia = settings.addsVia
        normalisesAccept = settings.normalisations.contains(.accept)
        normalisesAcceptEncoding = settings.normalisations.contains(.acceptEncoding)
    }
}

extension ResponseFieldRules {
    /// Creates the rules for responses of a site.
    init(_ settings: SiteSettings) {
        self.init(
            removed: settings.removedResponseFields,
            lines: settings.overriddenResponseFields.compactMap {
                FieldSetting(name: $0.name, value: $0.value)
            },
            tagsStripped: settings.exposesTags ? FieldNames() : settings.tagFields,
            clientCacheControl: settings.clientTTL.map { Array("max-age=\($0.seconds)".utf8) },
            addsVia: settings.addsVia)
    }
}

extension NodeSettings {
    /// Returns the policy of responses under `key` if the nodes of a cluster share them; `nil` if
    /// not, or if this node has no such site.
    func sharedPolicy(ofKey key: [UInt8]) -> SitePolicy? {
        let plan =
            key.first == UInt8(ascii: "/") ? sitePolicy(ofKey: key) : images.policy(ofKey: key.span)
        return plan.flatMap { $0.settings.usesPeers ? $0 : nil }
    }

    /// Returns true if the entry may be sent to other nodes for storage.
    func sharesWithPeers(_ entry: MemoryEntry) -> Bool {
        entry.metadata.flags.isResponse && sharedPolicy(ofKey: entry.key) != nil
    }

    /// Returns the policy of the site to which a key belongs; `nil` if there is none.
    private func sitePolicy(ofKey key: [UInt8]) -> SitePolicy? {
        guard key.starts(with: "//".utf8) else { return nil }
        let host = key.dropFirst(2).prefix { $0 != UInt8(ascii: "/") }
        return sitePolicies.first { $0.name.utf8.elementsEqual(host) }
            ?? sitePolicies.first(where: \.isForEveryHost)
    }
}
