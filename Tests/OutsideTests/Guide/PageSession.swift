import Foundation
import Glibc
import Harness

/// A page of the guide whose blocks a shell has run.
struct PageSession {
    /// The checkout that the pages are from.
    static let top = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

    /// What a step that went wrong has to say; empty if all went well.
    let faults: [String]
    /// The lines of steps that were left out, because a program is not installed.
    let skipped: [String]

    /// The arguments of unshare(1) that give a page its own network, mounts and processes, which
    /// end with it.
    private static let separate =
        ["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
        + (geteuid() == 0 ? [] : ["--map-root-user"])

    /// True if this process may create namespaces.
    static let isPossible: Bool = {
        guard let unshare = try? Program.find("unshare"), (try? Program.find("ip")) != nil else {
            return false
        }
        return (try? Program.run(unshare, separate + ["true"]).status) == 0
    }()

    /// Runs the steps of a page, in order.
    init(running steps: [GuideText.Step]) throws {
        guard !steps.isEmpty else {
            (faults, skipped) = ([], [])
            return
        }
        let folder = try TemporaryFolder(isOpen: true)
        let manager = FileManager.default
        let resources = try Self.resources()
        for name in ["session.sh", "origin.py"] {
            try manager.copyItem(
                at: resources.appending(path: name), to: folder.appending(path: name))
        }
        var script = """
            session='\(folder.path)' program='\(try NodeProcess.binary())' tree='\(Self.top.path)'
            . "$session/session.sh"

            """
        for step in steps {
            let name = "line-\(step.line)"
            try folder.write(step.text, to: name + ".text")
            try folder.write(step.commands, to: name + ".sh")
            let words = [name, step.output == nil ? "" : "shown"].joined(separator: " ")
            let run = "begin \(words); . \"$session/\(name).sh\"\n"
            script +=
                step.program.map { "if has '\($0)'; then \(run)else skip \(name); fi\n" } ?? run
        }
        let file = try folder.write(script + "begin end\n", to: "script")
        let result = try Program.run(
            try Program.find("unshare"), Self.separate + [try Program.find("bash"), file.path],
            seconds: 300)

        let read = { (name: String) in
            (try? Data(contentsOf: folder.appending(path: name))).map {
                String(decoding: $0, as: UTF8.self)
            }
        }
        skipped = read("skipped")?.split(separator: "\n").map(String.init) ?? []
        let at = read("at")?.trimmingCharacters(in: .newlines) ?? "the start"
        var faults: [String] = []
        if at != "end" || result.status != 0 {
            let status = result.status.map(String.init) ?? "none: killed after five minutes"
            faults.append(
                """
                \(at), exit status \(status):
                \(read(at + ".sh") ?? "")
                printed: \((read(at + ".out") ?? "").suffix(2_000))
                \((read(at + ".errors") ?? result.errors).suffix(2_000))
                """)
        }
        for step in steps {
            guard let output = step.output, let printed = read("line-\(step.line).out"),
                !output.matches(printed)
            else { continue }
            faults.append("line \(step.line), the page shows\n\(output.text)but got\n\(printed)")
        }
        self.faults = faults
    }

    private static func resources() throws -> URL {
        guard let folder = Bundle.module.resourceURL?.appending(path: "Session") else {
            throw CocoaError(.fileNoSuchFile)
        }
        return folder
    }
}
