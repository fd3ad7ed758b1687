package import Telemetry

/// The settings in force in a node: `/admin/v1/configuration`.
///
/// Secrets never appear here: those in files are represented by the paths, others by a placeholder.
package struct ConfigurationDocument: AdminDocument {
    /// All settings.
    package var entries: [Entry] = []
    /// The image settings, named as in the configuration file.
    package var images = NamedTexts()
    /// The sites that have a block of their own in the configuration file.
    package var sites: [Site] = []

    /// Creates an empty document.
    package init() {}

    /// The members.
    package static let fields: [Field] = [
        .required("settings", \.entries),
        .required("images", \.images),
        .required("sites", \.sites),
    ]

    /// One setting with its values and their source.
    package struct Entry: AdminDocument {
        /// The name of the setting.
        package var name = ""
        /// The values in force, as text; several for a setting that can be repeated.
        package var values: [String] = []
        /// The source of the values, in words: flag, environment, file and line, or default.
        package var source = ""
        /// True if a change takes effect only at a restart.
        package var needsRestart = false
        /// The allowed values, in words.
        package var allowed = ""
        /// The meaning of the setting.
        package var meaning = ""

        /// Creates an empty entry.
        package init() {}

        /// Creates the entry of `setting`; `texts` are its values.
        package init(_ setting: Setting, _ texts: [String], source: String) {
            name = setting.name
            values = texts
            self.source = source
            needsRestart = setting.needsRestart
            allowed = setting.kind.allowed
            meaning = setting.meaning
        }

        /// The members.
        package static let fields: [Field] = [
            .required("name", \.name),
            .required("values", \.values),
            .required("source", \.source, "Flag, environment variable, file and line, or default"),
            .required(
                "needs_restart", \.needsRestart, "True if a reload (SIGHUP) does not change it"),
            .required("allowed", \.allowed),
            .required("meaning", \.meaning),
        ]
    }

    /// One site and its options.
    package struct Site: AdminDocument {
        /// The pattern of the site's hosts.
        package var pattern = ""
        /// The address of the site's origin.
        package var origin = ""
        /// The site's other options.
        package var options = NamedTexts()

        /// Creates an empty site.
        package init() {}

        /// Creates a site from its parts.
        package init(_ pattern: String, origin: String, options: NamedTexts) {
            self.pattern = pattern
            self.origin = origin
            self.options = options
        }

        /// The members.
        package static let fields: [Field] = [
            .required("site", \.pattern),
            .required("origin", \.origin),
            .required("options", \.options),
        ]
    }
}

/// `{"level": "info"}`: the least severe message that is logged.
package struct LogLevelDocument: AdminDocument {
    /// The level, one of ``levels``.
    package var level = ""

    /// The accepted levels, the least severe first: those of swift-log, which this room may not
    /// use.
    package static let levels = [
        "trace", "debug", "info", "notice", "warning", "error", "critical",
    ]
    /// The maximum size of a request body with a level, in bytes.
    package static let bodyBytesMax = 1_024

    /// Creates a document without a level.
    package init() {}

    /// Creates the document for `level`, which is not checked.
    package init(_ level: String) {
        self.level = level
    }

    /// The level as the only member.
    package static let fields: [Field] = [
        .required("level", \.level, as: .enumeration(levels))
    ]

    /// Decodes and checks a level.
    ///
    /// - Throws: ``RequestBodyError``, or the decoder's own errors.
    package init(from decoder: any Decoder) throws {
        let object = try StrictKeyedContainer(decoder, allowedKeys: ["level"])
        let allowed = Self.levels.joined(separator: ", ")
        guard let level = try object.string("level"), Self.levels.contains(level) else {
            throw RequestBodyError.invalidValue("level", allowed: allowed)
        }
        self.level = level
    }
}

/// One certificate that the node presents or trusts; `/admin/v1/certificates` lists all.
package struct CertificateDocument: ListedDocument {
    /// The file that the configuration names.
    package var file = ""
    /// The names in the certificate: of hosts, or the subject if there are none.
    package var names: [String] = []
    /// The end of the validity, as in `2027-11-21T01:02:03Z`.
    package var notAfter = ""
    /// The number of whole days until then; negative once it has passed.
    package var daysLeft = 0
    /// The purpose: a raw value of ``Use``, or one that only newer versions know.
    package var use = Use.clients.rawValue

    /// The purpose of a certificate.
    package enum Use: String, CaseIterable, Sendable {
        /// The certificate is presented to clients, and to operators if `client-ca` is set.
        case clients
        /// The certificate is an issuer of operators' certificates (`client-ca`).
        case operators
    }

    /// Creates an empty document.
    package init() {}

    /// The name of the list.
    package static let listName = "certificates"

    /// The members.
    package static let fields: [Field] = [
        .required("file", \.file),
        .required("names", \.names),
        .required("not_after", \.notAfter),
        .required(
            "days_left", \.daysLeft, "Whole days until then; negative once it has passed",
            as: .anyInteger),
        .required("use", \.use, as: .enumeration(Use.self)),
    ]
}
