import Glibc
import HTTPRules
import Telemetry

/// The users besides its owner who can read a file with a secret, judged by the modes of the file
/// and of the directories above it.
package enum FileExposure: Hashable, Sendable {
    case group
    case everybody

    /// The permissions and owners of a file or a directory.
    package struct Facts: Hashable, Sendable {
        /// The nine permission bits.
        package var mode: UInt32
        /// The user id of the owner.
        package var owner: UInt32
        /// The group id.
        package var group: UInt32

        /// Creates facts from their parts; `mode` holds the nine permission bits.
        package init(mode: UInt32, owner: UInt32, group: UInt32) {
            self.mode = mode
            self.owner = owner
            self.group = group
        }
    }

    /// Judges a file; `nil` if only its owner can read it, or no other user can reach it.
    ///
    /// The group counts only if `user`, which the node runs as, owns the file. Otherwise the group
    /// may be what lets the node read it.
    ///
    /// - Parameters:
    ///   - file: the file's permissions.
    ///   - directories: the permissions of all directories above it.
    ///   - user: the user id of the process.
    package init?(of file: Facts, below directories: [Facts], by user: UInt32) {
        if file.mode & 0o004 != 0, directories.allSatisfy({ $0.mode & 0o001 != 0 }) {
            self = .everybody
        } else if file.mode & 0o040 != 0, file.owner == user,
            directories.allSatisfy({
                $0.mode & ($0.group == file.group ? 0o010 : 0o001) != 0
            })
        {
            self = .group
        } else {
            return nil
        }
    }

    /// Judges the file at `path`; also `nil` if it cannot be inspected, and for the secrets that a
    /// container engine mounts for this container alone.
    init?(ofFile path: String) {
        guard let resolved = Self.resolved(path), !resolved.hasPrefix("/run/secrets/"),
            let file = Self.facts(resolved)
        else { return nil }
        var directories: [Facts] = []
        var rest = resolved[...]
        while let slash = rest.lastIndex(of: "/") {
            rest = rest[..<slash]
            guard let facts = Self.facts(rest.isEmpty ? "/" : String(rest)) else { return nil }
            directories.append(facts)
        }
        self.init(of: file, below: directories, by: geteuid())
    }

    /// Returns the path without symbolic links; `nil` if the file does not exist.
    private static func resolved(_ path: String) -> String? {
        guard let text = unsafe realpath(path, nil) else { return nil }
        defer { unsafe free(text) }
        return unsafe String(cString: text)
    }

    /// Returns the permissions of a file; `nil` if it cannot be inspected.
    private static func facts(_ path: String) -> Facts? {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        return Facts(
            mode: UInt32(status.st_mode) & 0o777, owner: status.st_uid, group: status.st_gid)
    }
}

extension Configuration {
    /// The warnings about files with secrets of the node and of sites that others can read, one
    /// line each.
    var exposureWarnings: [String] {
        let settings = [
            Setting.node.adminTokenFile.setting, Setting.clients.purgeTokenFile.setting,
            Setting.node.decisionTokenFile.setting, Setting.node.signingKeyFile.setting,
            Setting.tls.tlsKey.setting, Setting.cluster.clusterSecretFile.setting,
        ]
        let ofSettings = settings.flatMap { setting in
            values.texts(setting).map { (what: "setting \(setting.name)", path: $0) }
        }
        let ofSites = values.siteBlocks.flatMap { site in
            site.settings.overriddenRequestFields.compactMap { field in
                field.file.map {
                    (what: "site \(site.pattern): set-request-fields", path: $0)
                }
            }
        }
        return (ofSettings + ofSites).compactMap { what, path in
            FileExposure(ofFile: path).map {
                "\(what): \(path.quoted(limit: 4096)) can be read by "
                    + ($0 == .group ? "its group" : "every user of this machine")
                    + "; only its owner should be able to read a secret (mode 600)"
            }
        }
    }
}
