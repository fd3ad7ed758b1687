package import Telemetry

/// The differences between a node's current settings and the next ones.
package struct ConfigurationChange: Hashable, Sendable {
    /// A changed setting, with its values as texts.
    package struct Item: Hashable, Sendable, CustomStringConvertible {
        /// The setting.
        package let setting: Setting
        /// The current value.
        package let before: String
        /// The next value.
        package let after: String

        /// The change as in `memory-limit 512MiB -> 1GiB`.
        package var description: String { "\(setting.name) \(before) -> \(after)" }
    }

    /// The changes that a running node applies, in the order of the table.
    package let live: [Item]
    /// The changes that take effect only after a restart.
    package let awaitingRestart: [Item]

    /// True if the trust in origins' certificates has changed, also if only the contents of a file
    /// did.
    package var hasNewOriginTrust = false

    /// True if no setting has changed; the contents of files that settings name may have.
    package var isEmpty: Bool { live.isEmpty && awaitingRestart.isEmpty }

    /// Returns true if a setting of this section is among the ``live`` changes.
    package func affects(_ section: (some SettingSection).Type) -> Bool {
        let settings = section.settings
        return live.contains { settings.contains($0.setting) }
    }
}

extension Configuration {
    /// Returns the configuration that a running node changes to when it is given `next`, and the
    /// differences.
    ///
    /// Settings that need a restart keep their values, and the others are checked against those.
    /// For example, a node that listens beyond loopback still needs configured origins, wherever
    /// `next` listens.
    ///
    /// - Throws: the faults, one of which is that TLS or the cluster would be turned on or off;
    ///   nothing may change then.
    package func changed(
        to next: Configuration
    ) throws(ConfigurationErrors) -> (configuration: Configuration, change: ConfigurationChange) {
        var given = next.declaredValues
        for setting in Setting.table where setting.needsRestart {
            given.copy(setting, from: self.declaredValues)
        }
        var kept = try Configuration(reconciling: given, warnings: next.warnings)
        // Clients of the same port would continue what they have begun, perhaps in clear text.
        guard self.tlsCertificate.isEmpty == kept.tlsCertificate.isEmpty else {
            throw ConfigurationErrors(.tlsToggled(off: kept.tlsCertificate.isEmpty))
        }
        guard (self.clusterSecretFile == nil) == (kept.clusterSecretFile == nil) else {
            throw ConfigurationErrors(.clusterToggled(off: kept.clusterSecretFile == nil))
        }
        kept.decisionToken = next.decisionToken
        kept.clusterSecrets = next.clusterSecrets
        kept.tlsMaterial = next.tlsMaterial
        kept.signingKeys = next.signingKeys
        kept.purgeTokens = next.purgeTokens
        kept.adminGrants = next.adminGrants
        let live = Self.differences(values, kept.values) { !$0.needsRestart }
        let awaiting = Self.differences(values, next.values) { $0.needsRestart }
        var change = ConfigurationChange(live: live, awaitingRestart: awaiting)
        change.hasNewOriginTrust =
            tlsMaterial.origins != next.tlsMaterial.origins
            || tlsMaterial.sites != next.tlsMaterial.sites
        return (kept, change)
    }

    /// Returns the differences of the settings for which `isMeant` returns true.
    private static func differences(
        _ before: ConfigurationValues, _ after: ConfigurationValues,
        where isMeant: (Setting) -> Bool
    ) -> [ConfigurationChange.Item] {
        Setting.table.filter(isMeant).compactMap { setting in
            let isOfSites = setting == Setting.origins.site.setting
            let (old, new) =
                isOfSites
                ? (before.siteTexts, after.siteTexts)
                : (before.texts(setting), after.texts(setting))
            let hasOtherSecrets =
                isOfSites && old == new && before.sites.map(\.site) != after.sites.map(\.site)
            guard old != new || hasOtherSecrets else { return nil }
            return ConfigurationChange.Item(
                setting: setting, before: summary(old, new),
                after: summary(new, old) + (hasOtherSecrets ? " with other secrets" : ""))
        }
    }

    /// Returns the values in one line, `none` for an empty list; of more than eight values, those
    /// from the first that differs from `other`, at most eight, and the number of the rest.
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
