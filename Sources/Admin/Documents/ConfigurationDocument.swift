package import Telemetry

/// The settings in force in a node: `/admin/v1/configuration`.
///
/// Secrets are kept in separate files and never appear here; the paths of those files do.
package struct ConfigurationDocument: Sendable {
    /// One setting with its values and their source.
    package struct Entry: Sendable {
        /// The setting.
        package var setting: Setting
        /// The values in force, as text; several for a setting that can be repeated.
        package var texts: [String]
        /// The source of the values, in words: flag, environment, file and line, or default.
        package var source: String

        /// Creates an entry from its parts.
        package init(_ setting: Setting, _ texts: [String], source: String) {
            self.setting = setting
            self.texts = texts
            self.source = source
        }
    }

    /// One site and its options.
    package struct Site: Sendable {
        /// The pattern of the site's hosts.
        package var pattern: String
        /// The address of the site's origin.
        package var origin: String
        /// The site's other options, as name and value.
        package var options: [(name: String, text: String)]

        /// Creates a site from its parts.
        package init(_ pattern: String, origin: String, options: [(name: String, text: String)]) {
            self.pattern = pattern
            self.origin = origin
            self.options = options
        }
    }

    /// All settings.
    package var entries: [Entry]
    /// All sites.
    package var sites: [Site]
    /// The image settings, named as in the configuration file.
    package var images: [(name: String, text: String)]

    /// Creates the document from its parts; `rows` are its ``entries``.
    package init(rows: [Entry], sites: [Site], images: [(name: String, text: String)]) {
        self.entries = rows
        self.sites = sites
        self.images = images
    }

    /// The document as JSON.
    package var json: JSON {
        [
            "settings": .list(entries.map(\.json)),
            "images": .object(images.map { JSON.Member($0.name, .text($0.text)) }),
            "sites": .list(
                sites.map { site in
                    [
                        "site": .text(site.pattern), "origin": .text(site.origin),
                        "options": .object(
                            site.options.map { JSON.Member($0.name, .text($0.text)) }),
                    ]
                }),
        ]
    }

    static let schema = JSONSchema.object(
        .required("settings", JSONSchema.list(of: Entry.schema)),
        .required("images", JSONSchema.map(of: JSONSchema.string)),
        .required(
            "sites",
            JSONSchema.list(
                of: JSONSchema.object(
                    .required("site", JSONSchema.string), .required("origin", JSONSchema.string),
                    .required("options", JSONSchema.map(of: JSONSchema.string))))))
}

extension ConfigurationDocument.Entry {
    fileprivate var json: JSON {
        [
            "name": .text(setting.name), "values": JSON(texts), "source": .text(source),
            "needs_restart": .bool(setting.needsRestart), "allowed": .text(setting.kind.allowed),
            "meaning": .text(setting.meaning),
        ]
    }

    fileprivate static let schema = JSONSchema.object(
        .required("name", JSONSchema.string),
        .required("values", JSONSchema.list(of: JSONSchema.string)),
        .required("source", JSONSchema.string, "Flag, environment, file and line, or built in"),
        .required("needs_restart", JSONSchema.boolean, "SIGHUP does not change it"),
        .required("allowed", JSONSchema.string), .required("meaning", JSONSchema.string))
}

/// `{"level": "info"}`: the least severe message that is logged.
package struct LogLevelDocument: Hashable, Sendable {
    /// The level, one of ``levels``.
    package var level: String

    /// Creates the document for `level`, which is not checked.
    package init(_ level: String) {
        self.level = level
    }

    /// The accepted levels, the least severe first.
    package static let levels = [
        "trace", "debug", "info", "notice", "warning", "error", "critical",
    ]
    /// The maximum size of a request body with a level, in bytes.
    package static let bodyBytesMax = 1_024

    /// The document as JSON.
    package var json: JSON { ["level": .text(level)] }

    static let schema = JSONSchema.object(.required("level", JSONSchema.enumeration(levels)))
}

extension LogLevelDocument: Decodable {
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
