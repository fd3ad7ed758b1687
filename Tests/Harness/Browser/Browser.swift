import Foundation
import Glibc

/// A headless Chromium with a profile of its own, asked through chromedriver as WebDriver
/// (W3C, Level 2) has it; gone with all that it wrote when released.
package final class Browser: Sendable {
    /// The browser, or chromedriver, refused or is not there.
    package struct Fault: Error, CustomStringConvertible {
        package let description: String
    }

    private let driver: Program
    private let folder: URL
    private let port: Int
    /// The path of the session.
    private let session: String
    private let browserProcess: Int32

    /// How long a page is waited for, and a script.
    private static let seconds = 60.0

    /// Starts a browser with an empty page.
    ///
    /// - Throws: ``Fault`` that says what is missing or was said.
    package init() throws {
        folder = try Program.temporaryFolder()
        guard let path = try? Program.find("chromedriver") else {
            throw Fault(description: "there is no chromedriver in PATH; deploy/test installs it")
        }
        // It keeps caches in the home of who runs it, and forgets files in the temporary folder.
        let driver = try Program(
            path, ["--port=0"], environment: ["HOME": folder.path, "TMPDIR": folder.path])
        self.driver = driver
        port = try Self.port(of: driver)
        let made = try Self.ask(port, "POST", "/session", ["capabilities": Self.wanted(folder)])
        let session = made as? [String: Any] ?? [:]
        guard let id = session["sessionId"] as? String,
            let capabilities = session["capabilities"] as? [String: Any],
            let process = capabilities["goog:processID"] as? Int
        else { throw Fault(description: "no session: \(made)") }
        self.session = "/session/\(id)"
        browserProcess = Int32(process)
    }

    deinit {
        _ = try? Self.ask(port, "DELETE", session)
        driver.kill()
        // If the driver could not end it. It ends its own children.
        if Self.belongs(browserProcess, to: folder) { _ = Glibc.kill(browserProcess, SIGKILL) }
        let folder = folder
        _ = Deadline.seconds(10).reached {
            // What still ends may still write.
            try? FileManager.default.removeItem(at: folder)
            return !FileManager.default.fileExists(atPath: folder.path)
        }
    }

    /// True if a process runs with the profile in `folder`: ids are given again.
    private static func belongs(_ process: Int32, to folder: URL) -> Bool {
        let line = try? String(contentsOfFile: "/proc/\(process)/cmdline", encoding: .utf8)
        return line?.contains(folder.path) == true
    }

    private static func port(of driver: Program) throws -> Int {
        var port: Int?
        _ = Deadline.seconds(30).reached {
            let said = String(decoding: driver.output, as: UTF8.self)
            port = said.firstMatch(of: /on port ([0-9]+)\.\n/).flatMap { Int($0.output.1) }
            return port != nil || !driver.isRunning
        }
        guard let port else {
            throw Fault(description: "chromedriver does not start: \(driver.errors)")
        }
        return port
    }

    private static func wanted(_ folder: URL) -> [String: Any] {
        // Chromium does not make its sandbox for root.
        let sandbox = geteuid() == 0 ? ["--no-sandbox"] : []
        let flags =
            [
                "--headless=new", "--disable-dev-shm-usage", "--disable-gpu",
                "--disable-breakpad", "--no-first-run", "--disable-background-networking",
                "--user-data-dir=\(folder.appending(path: "profile").path)",
            ] + sandbox
        return [
            "alwaysMatch": [
                "browserName": "chrome",
                "goog:chromeOptions": ["args": flags],
                "goog:loggingPrefs": ["browser": "ALL"],
                "timeouts": ["script": Int(seconds * 1_000), "pageLoad": Int(seconds * 1_000)],
            ]
        ]
    }

    /// One command of WebDriver; what it gives.
    @discardableResult
    package func ask(
        _ path: String, _ parameters: [String: Any] = [:], method: String = "POST"
    ) throws -> Any {
        try Self.ask(port, method, session + path, parameters)
    }

    private static func ask(
        _ port: Int, _ method: String, _ path: String, _ parameters: [String: Any] = [:]
    ) throws -> Any {
        let connection = try HTTPConnection(port: port)
        let body =
            method == "POST" ? try JSONSerialization.data(withJSONObject: parameters) : Data()
        let fields = ["Content-Type: application/json", "Content-Length: \(body.count)"]
        let head = HTTPConnection.request(path, method: method, fields: fields)
        try connection.socket.send(head + Array(body))
        let answer = connection.readResponse(method: method, seconds: seconds + 10)
        let read = try? JSONSerialization.jsonObject(
            with: Data(answer.body ?? []), options: .fragmentsAllowed)
        guard let document = read as? [String: Any], let value = document["value"] else {
            throw Fault(description: "\(method) \(path): \(answer)")
        }
        guard answer.status == 200 else {
            let said = (value as? [String: Any])?["message"] ?? value
            throw Fault(description: "\(method) \(path): \(said)")
        }
        return value
    }
}
