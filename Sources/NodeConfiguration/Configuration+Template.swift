import Telemetry

extension Configuration {
    /// The lines of a configuration file in which every setting is explained and commented out,
    /// with its default or, for one without a default, an example.
    package static var template: [String] {
        let sections = Setting.sections.flatMap { section in
            heading(section.title)
                + section.keys.map(\.setting).filter { $0 != Setting.node.config.setting }
                .flatMap(lines)
        }
        return opening + sections
            + heading("Sites")
            + ["#\(ConfigurationFile.sitesKey):", "#  www.example.com: http://127.0.0.1:9000"]
            + ["#  shop.example.com:"] + SiteOption.options(of: .site).flatMap(lines)
            + heading("Images that are requested by URL")
            + ["#\(ConfigurationFile.imagesKey):"]
            + SiteOption.options(of: .images).map { "#  \($0.name): \($0.example)" }
    }

    /// The lines at the beginning of the template.
    private static var opening: [String] {
        [
            "# Settings of a node. Commented settings show the default, or an example if there is",
            "# none; commented keys of sites and images show examples. After a change:",
            "#", "#   nuthatch check-config --config FILE   reports errors",
            "#   SIGHUP (systemctl reload nuthatch)    applies it, except for settings marked",
            "#                                         \"restart\"",
        ]
    }

    /// Returns the lines of a heading.
    private static func heading(_ title: String) -> [String] { ["", "", "## \(title)"] }

    /// Returns the lines about one setting of the node.
    private static func lines(_ setting: Setting) -> [String] {
        let texts = setting.defaults.isEmpty ? [setting.example] : setting.defaults
        let facts =
            ["Allowed: \(setting.kind.allowed)", "default: \(setting.defaultText)"]
            + (setting.needsRestart ? ["restart"] : [])
        return [
            "", "# \(setting.meaning).", "# \(setting.advice)",
            "# \(facts.joined(separator: "; ")).",
            "#\(setting.name): \(yaml(texts, isList: setting.isList))",
        ]
    }

    /// Returns the lines about one key of a site.
    private static func lines(_ option: SiteOption) -> [String] {
        [
            "#", "#    # \(option.meaning).",
            "#    # Allowed: \(option.allowed); default: \(option.siteDefault).",
            "#    \(option.name): \(option.example)",
        ]
    }
}
