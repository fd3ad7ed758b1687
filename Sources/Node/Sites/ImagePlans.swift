import Ground
import HTTPRules
import Origin

/// How images are answered that are asked for by their URLs, which say where they come from.
struct ImagePolicies: Sendable {
    /// Of origins that no pattern is for.
    let defaultPolicy: SitePolicy
    /// The first pattern that an origin matches counts.
    let originPolicies: [(pattern: OriginPattern, plan: SitePolicy)]

    init(_ others: SitePolicy, named: [(pattern: OriginPattern, plan: SitePolicy)] = []) {
        self.defaultPolicy = others
        self.originPolicies = named
    }

    /// How the image with this key is answered.
    func policy(ofKey key: Span<UInt8>) -> SitePolicy {
        guard !originPolicies.isEmpty, let origin = OriginAuthority(ofKey: key) else {
            return defaultPolicy
        }
        return originPolicies.first { $0.pattern.matches(host: origin.host, port: origin.port) }?
            .plan
            ?? defaultPolicy
    }

    /// The nodes of a cluster have some of them together.
    var areShared: Bool {
        defaultPolicy.settings.usesPeers || originPolicies.contains { $0.plan.settings.usesPeers }
    }
}

extension ImagePolicies {
    init(_ block: ImageBlock, _ rules: ImageRules, objectBytesMax: UInt64) {
        func plan(_ settings: ImageSettings) -> SitePolicy {
            SitePolicy(rules, settings, objectBytesMax: objectBytesMax)
        }
        self.init(
            plan(block.all), named: block.origins.map { ($0.pattern, plan($0.settings)) })
    }
}
