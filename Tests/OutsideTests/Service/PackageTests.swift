import Foundation
import Harness
import Testing

extension Outside {
    /// Installing and upgrading is tried by deploy/package-trial, in a root of its own.
    @Suite("The Debian package")
    struct PackageTests {
        private static let debhelper = try? Program.find("dh")
        private static let repository = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

        /// The package of the tested binary, and its files below `root`.
        private final class Unpacked {
            let folder: TemporaryFolder
            let package: String
            let scripts: URL
            let root: URL

            init() throws {
                folder = try TemporaryFolder()
                let made = try Program.run(
                    PackageTests.repository.appending(path: "deploy/package").path,
                    ["--binary", try NodeProcess.binary(), "--output", folder.path],
                    environment: [
                        "DPKG_DEB_COMPRESSOR_TYPE": "none", "DEB_BUILD_OPTIONS": "noautodbgsym",
                    ],
                    seconds: 600)
                let lines = String(decoding: made.output, as: UTF8.self).split(separator: "\n")
                package = String(try #require(lines.last, "\(made.errors)"))
                (root, scripts) = (
                    folder.appending(path: "root"), folder.appending(path: "scripts")
                )
                try #require(
                    try dpkg("--extract", package, root.path).status == 0, "\(made.errors)")
                try #require(try dpkg("--control", package, scripts.path).status == 0)
            }

            func dpkg(_ arguments: String...) throws -> ProgramResult {
                try Program.run(try Program.find("dpkg-deb"), arguments)
            }

            /// The text of an installed file; uncompressed if its name ends with `.gz`.
            func text(_ path: String) throws -> String {
                let file = root.appending(path: path).path
                let result = try Program.run("/bin/sh", ["-c", "gzip -cdf \"$1\"", "sh", file])
                #expect(result.status == 0, "\(path): \(result.errors)")
                return String(decoding: result.output, as: UTF8.self)
            }
        }

        private func output(_ words: String...) throws -> String {
            String(decoding: try NodeProcess.run(words).output, as: UTF8.self)
        }

        @Test(
            "Files, modes, dependencies, scripts and pages are as the program has them",
            .enabled(if: PackageTests.debhelper != nil))
        func contents() throws {
            let unpacked = try Unpacked()
            let list = String(
                decoding: try unpacked.dpkg("--contents", unpacked.package).output, as: UTF8.self)
            let files = list.split(separator: "\n").compactMap { line -> String? in
                let words = line.split(separator: " ")
                // The place of units has changed between releases of Debian.
                let path = words[5].dropFirst().replacing(
                    "/usr/lib/systemd/", with: "/lib/systemd/")
                return line.hasPrefix("d") ? nil : "\(words[0]) \(words[1]) \(path)"
            }
            #expect(
                files.sorted() == Self.files.map { "\($0.mode) root/root \($0.path)" }.sorted())
            #expect(list.contains("drwx------ root/root"), "secrets are for root alone")
            try control(of: unpacked)
            try pages(of: unpacked)
            try settings(of: unpacked)
        }

        private static let files: [(mode: String, path: String)] =
            [("-rwxr-xr-x", "/usr/bin/nuthatch")]
            + [
                "/etc/nuthatch/nuthatch.yaml", "/etc/logrotate.d/nuthatch",
                "/lib/systemd/system/nuthatch.service", "/lib/systemd/system/nuthatch.socket",
                "/lib/systemd/system/nuthatch.service.d/access-log.conf",
                "/usr/lib/sysusers.d/nuthatch.conf", "/usr/lib/tmpfiles.d/nuthatch.conf",
                "/usr/share/bash-completion/completions/nuthatch",
                "/usr/share/zsh/vendor-completions/_nuthatch",
                "/usr/share/fish/vendor_completions.d/nuthatch.fish",
                "/usr/share/man/man1/nuthatch.1.gz", "/usr/share/man/man5/nuthatch.yaml.5.gz",
                "/usr/share/doc/nuthatch/changelog.gz",
                "/usr/share/doc/nuthatch/changelog.Debian.gz", "/usr/share/doc/nuthatch/copyright",
                "/usr/share/lintian/overrides/nuthatch",
            ].map { ("-rw-r--r--", $0) }

        private func control(of unpacked: Unpacked) throws {
            let fields = String(
                decoding: try unpacked.dpkg("--field", unpacked.package).output, as: UTF8.self)
            let version = try output("version").split(separator: " ")[1]
            #expect(fields.contains("\nVersion: \(version)-1\n"))
            for library in ["libc6 (>= ", "libnghttp2-14 (>= ", "libssl3"] {
                #expect(fields.contains(library), "\(fields)")
            }
            let conffiles = try String(
                contentsOf: unpacked.scripts.appending(path: "conffiles"), encoding: .utf8)
            #expect(conffiles == "/etc/logrotate.d/nuthatch\n/etc/nuthatch/nuthatch.yaml\n")
            for script in ["postinst", "prerm", "postrm"] {
                let file = unpacked.scripts.appending(path: script)
                let check = try Program.run("/bin/sh", ["-n", file.path])
                #expect(check.status == 0, "\(script): \(check.errors)")
                let text = try String(contentsOf: file, encoding: .utf8)
                #expect(text.contains("set -e") && !text.contains("#DEBHELPER#"), "\(script)")
            }
            guard let lintian = try? Program.find("lintian") else { return }
            let check = try Program.run(
                lintian,
                [
                    "--allow-root", "--fail-on", "error,warning", "--suppress-tags",
                    // Of this package only: it is not compressed, and links Swift's libraries.
                    "uses-no-compression-for-control-tarball,"
                        + "uses-no-compression-for-data-tarball,custom-library-search-path",
                    unpacked.package,
                ],
                seconds: 300)
            #expect(check.status == 0, "\(String(decoding: check.output, as: UTF8.self))")
        }

        /// The words after `names` of the options in a dump of a command and its subcommands.
        private func words(_ command: [String: Any]) -> [String] {
            let options = command["arguments"] as? [[String: Any]] ?? []
            let names = options.filter { $0["shouldDisplay"] as? Bool == true }.flatMap {
                ($0["names"] as? [[String: String]] ?? []).compactMap {
                    $0["kind"] == "long" ? $0["name"].map { "--" + $0 } : nil
                }
            }
            let subcommands = command["subcommands"] as? [[String: Any]] ?? []
            return [command["commandName"] as? String ?? ""] + names + subcommands.flatMap(words)
        }

        private func pages(of unpacked: Unpacked) throws {
            let dump = try NodeProcess.run(["--experimental-dump-help"]).output
            let top = try JSONSerialization.jsonObject(with: dump) as? [String: Any]
            let page = try unpacked.text("usr/share/man/man1/nuthatch.1.gz")
                .replacing("\\-", with: "-")
            let all = words(try #require(top?["command"] as? [String: Any]))
            #expect(all.count > 100)
            #expect(all.filter { $0 != "help" && !page.contains($0) } == [])
            let settings = try unpacked.text("usr/share/man/man5/nuthatch.yaml.5.gz")
                .replacing("\\-", with: "-")
            let names = try output("explain").split(separator: "\n").filter { !$0.hasPrefix(" ") }
                .map { $0.trimmingPrefix("--").prefix { !" ,".contains($0) } }
            #expect(names.count > 100)
            #expect(names.filter { $0 != "config" && !settings.contains("\\fB\($0)\\fR") } == [])
            if let mandoc = try? Program.find("mandoc") {
                for page in ["man1/nuthatch.1.gz", "man5/nuthatch.yaml.5.gz"] {
                    let file = unpacked.root.appending(path: "usr/share/man/\(page)").path
                    let lint = try Program.run(mandoc, ["-T", "lint", "-W", "warning", file])
                    #expect(lint.output.isEmpty, "\(String(decoding: lint.output, as: UTF8.self))")
                }
            }
            for (shell, path) in [
                ("bash", "bash-completion/completions/nuthatch"),
                ("zsh", "zsh/vendor-completions/_nuthatch"),
                ("fish", "fish/vendor_completions.d/nuthatch.fish"),
            ] {
                let script = try output("--generate-completion-script", shell)
                // Without the first line of a script that is run.
                #expect(
                    try unpacked.text("usr/share/\(path)")
                        == script.trimmingPrefix("#!/bin/bash\n"),
                    "\(shell)")
            }
        }

        private func settings(of unpacked: Unpacked) throws {
            let file = try unpacked.text("etc/nuthatch/nuthatch.yaml")
            let disk = "cache-dir: /var/cache/nuthatch\n"
            #expect(
                try output("explain", "--yaml") == file.replacing("\n" + disk, with: "\n#" + disk))
            let path = unpacked.root.appending(path: "etc/nuthatch/nuthatch.yaml").path
            let check = try NodeProcess.run(["check-config", "--config", path])
            #expect(check.status == 0, "\(check.errors)")
            for unit in ["nuthatch.service", "nuthatch.socket"] {
                let own = Self.repository.appending(path: "deploy/systemd/\(unit)")
                let text = try String(contentsOf: own, encoding: .utf8)
                let isOld = FileManager.default.fileExists(
                    atPath: unpacked.root.appending(path: "lib").path)
                #expect(
                    try unpacked.text("\(isOld ? "" : "usr/")lib/systemd/system/\(unit)") == text)
            }
        }
    }
}
