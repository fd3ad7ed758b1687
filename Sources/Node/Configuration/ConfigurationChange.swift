package import Telemetry

/// What is different between the settings a node runs with and those it is given next.
package struct ConfigurationChange: Hashable, Sendable {
    /// One setting, with its values as texts.
    package struct Item: Hashable, Sendable, CustomStringConvertible {
        package let name: SettingName
        package let before: String
        package let after: String

        /// As in `memory-limit 512MiB -> 1GiB`.
        package var description: String { "\(name.rawValue) \(before) -> \(after)" }
    }

    /// What a running node takes over, in the order of the table.
    package let live: [Item]
    /// What it takes over only when it is started again, and keeps as it was until then.
    package let awaitingRestart: [Item]

    /// Whom origins are to be for this node to believe them has changed, be it in a file that is
    /// called what it was.
    package var hasNewOriginTrust = false

    package var isEmpty: Bool { live.isEmpty && awaitingRestart.isEmpty }

    /// True if a setting under this heading changes live.
    package func affects(_ section: Setting.Section) -> Bool {
        live.contains { $0.name.setting.section == section }
    }
}

extension Configuration {
    /// What a node that runs with these settings is to run with when it is given `next`, and how
    /// that differs.
    ///
    /// Settings that need a restart keep their values, and the others are held against those: a
    /// node that listens beyond loopback still has to be told its origins, wherever `next` listens.
    /// - Throws: what does not fit; nothing is to change then.
    package func changed(
        to next: Configuration
    ) throws(ConfigurationErrors) -> (configuration: Configuration, change: ConfigurationChange) {
        var given = next.declaredValues
        for setting in Setting.table where setting.needsRestart {
            given.copy(setting.name, from: self.declaredValues)
        }
        var kept = try Configuration(reconciling: given, warnings: next.warnings)
        // Clients of the same port would go on with what they have begun, perhaps in clear text.
        guard tls.certificateFiles.isEmpty == kept.tls.certificateFiles.isEmpty else {
            throw ConfigurationErrors(.tlsToggled(off: kept.tls.certificateFiles.isEmpty))
        }
        guard (cluster.secretFile == nil) == (kept.cluster.secretFile == nil) else {
            throw ConfigurationErrors(.clusterToggled(off: kept.cluster.secretFile == nil))
        }
        kept.decisionToken = next.decisionToken
        kept.cluster.secrets = next.cluster.secrets
        kept.tls.material = next.tls.material
        kept.signingKeys = next.signingKeys
        kept.purgeTokens = next.purgeTokens
        kept.adminGrants = next.adminGrants
        let live = Self.differences(values, kept.values) { !$0.needsRestart }
        let awaiting = Self.differences(values, next.values) { $0.needsRestart }
        var change = ConfigurationChange(live: live, awaitingRestart: awaiting)
        change.hasNewOriginTrust =
            tls.material.origins != next.tls.material.origins
            || tls.material.sites != next.tls.material.sites
        return (kept, change)
    }

    private static func differences(
        _ before: ConfigurationValues, _ after: ConfigurationValues,
        where isMeant: (Setting) -> Bool
    ) -> [ConfigurationChange.Item] {
        Setting.table.filter(isMeant).compactMap { setting in
            let isOfSites = setting.name == .site
            let (old, new) =
                isOfSites
                ? (before.siteTexts, after.siteTexts)
                : (before.texts(setting.name), after.texts(setting.name))
            let hasOtherSecrets =
                isOfSites && old == new && before.sites.map(\.site) != after.sites.map(\.site)
            guard old != new || hasOtherSecrets else { return nil }
            return ConfigurationChange.Item(
                name: setting.name, before: summary(old, new),
                after: summary(new, old) + (hasOtherSecrets ? " with other secrets" : ""))
        }
    }

    /// Long lists are cut, but not before the first item in which they differ.
    private static func summary(_ texts: [String], _ other: [String]) -> String {
        guard !texts.isEmpty else { return "none" }
        let itemsMax = 8
        let common = zip(texts, other).prefix { $0 == $1 }.count
        let start = texts.count <= itemsMax ? 0 : min(common, texts.count - 1)
        let shown = texts[start...].prefix(itemsMax)
        let text = shown.map { String($0.prefix(200)).singleLine }.joined(separator: " ")
        let left = texts.count - shown.count
        return left == 0 ? text : text + " and \(left) more"
    }
}
