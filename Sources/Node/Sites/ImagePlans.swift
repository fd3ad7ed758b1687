import Ground
import HTTPRules
import Origin

/// How images are answered that are asked for by their URLs, which say where they come from.
struct ImagePlans: Sendable {
    /// Of origins that no pattern is for.
    let others: SitePlan
    /// The first pattern that an origin matches counts.
    let named: [(pattern: OriginPattern, plan: SitePlan)]

    init(_ others: SitePlan, named: [(pattern: OriginPattern, plan: SitePlan)] = []) {
        self.others = others
        self.named = named
    }

    /// How the image with this key is answered.
    func plan(ofKey key: Span<UInt8>) -> SitePlan {
        guard !named.isEmpty, let origin = OriginAuthority(ofKey: key) else { return others }
        return named.first { $0.pattern.matches(host: origin.host, port: origin.port) }?.plan
            ?? others
    }

    /// The nodes of a cluster have some of them together.
    var areShared: Bool {
        others.settings.isShared || named.contains { $0.plan.settings.isShared }
    }
}

extension ImagePlans {
    init(_ block: ImageBlock, _ rules: ImageRules, objectBytesMax: UInt64) {
        func plan(_ settings: ImageSettings) -> SitePlan {
            SitePlan(rules, settings, objectBytesMax: objectBytesMax)
        }
        self.init(
            plan(block.all), named: block.origins.map { ($0.pattern, plan($0.settings)) })
    }
}
