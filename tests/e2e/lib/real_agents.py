"""The real agents against the toy model, offline. They are installed once from npm into the cache
that the unit tests use; where that is impossible the tests are skipped and say why."""
import fcntl
import os
import platform
import re
import shutil
import subprocess

from lib.check import SAFETY, Skip
from lib.server import BUILD, ROOT

SOURCE = os.path.join(ROOT, "src", "backend", "real_test.c")


def versions():
    with open(SOURCE) as f:
        return dict(re.findall(r'#define (\w+)_VERSION\s+"([\d.]+)"', f.read()))


def obstacle():
    off = os.environ.get("AGENT_API_REAL")
    if off == "0":
        return "turned off by AGENT_API_REAL=0"
    if not off and ("asan" in BUILD or "tsan" in BUILD):
        return "they run in the plain build; AGENT_API_REAL=1 runs them in this one"
    if platform.machine() != "x86_64":
        return "no recorded agents for this processor"
    if not (shutil.which("node") and shutil.which("npm")):
        return "node and npm are not installed"
    return None if "HOME" in os.environ else "no HOME to keep the agents in"


def install():
    """One installer at a time, also between test programs. The directory of modules."""
    v = versions()
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.environ["HOME"], ".cache")
    home = os.path.join(cache, "uar-test-npm")
    os.makedirs(home, exist_ok=True)
    stamp = os.path.join(home, f"ok-{v['CLAUDE']}-{v['CODEX']}-{v['ACP']}")
    with open(os.path.join(home, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(stamp):
            with open(os.path.join(home, "package.json"), "w") as f:
                f.write('{"private":true}\n')
            done = subprocess.run(
                ["timeout", "600", "npm", "install", "--no-audit", "--no-fund", "--no-save",
                 "--ignore-scripts", "@anthropic-ai/claude-code@" + v["CLAUDE"],
                 "@openai/codex@" + v["CODEX"],
                 "@agentclientprotocol/claude-agent-acp@" + v["ACP"]],
                cwd=home, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if done.returncode:
                raise Skip("npm could not install the agents")
            with open(stamp, "w"):
                pass
    return os.path.join(home, "node_modules")


class Real:
    """The model and where the agents are."""

    def __init__(self):
        why = obstacle()
        if why:
            raise Skip(why)
        self.modules = install()
        self.model = subprocess.Popen(
            ["node", os.path.join(ROOT, "tests", "fixtures", "toy_model_server.mjs"), "0"],
            stdout=subprocess.PIPE, text=True)
        found = re.match(r"listening (\d+)", self.model.stdout.readline())
        if not found:
            raise Skip("the toy model did not start")
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.model.kill()
        self.model.wait(SAFETY)
        self.model.stdout.close()

    def definition(self, shop, agent, scenario, **more):
        """What Shop.define takes for the real agent in this scenario of the model."""
        home = shop.file(f"home-{agent}-{scenario}")
        os.makedirs(home, exist_ok=True)
        with open(os.path.join(home, "config.toml"), "w") as f:
            f.write(f"""model = "toy-model"
model_provider = "toy"
check_for_update_on_startup = false
[analytics]
enabled = false
[features]
plugins = false
apps = false
[model_providers.toy]
name = "toy"
base_url = "http://127.0.0.1:{self.port}/{scenario}/v1"
env_key = "TOY_API_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
[shell_environment_policy]
inherit = "core"
""")
        env = {"HOME": home, "TOY_API_KEY": "sk-dummy-0000", "IS_SANDBOX": "1",
               "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{self.port}/{scenario}",
               "ANTHROPIC_API_KEY": "sk-ant-dummy-0000", "DISABLE_AUTOUPDATER": "1",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "0"}
        claude = os.path.join(self.modules, "@anthropic-ai/claude-code-linux-x64/claude")
        codex = os.path.join(self.modules, "@openai/codex-linux-x64/vendor/"
                             "x86_64-unknown-linux-musl/bin/codex")
        acp = os.path.join(self.modules, "@agentclientprotocol/claude-agent-acp/dist/index.js")
        how = {"claude_code": {"program": claude, "home": home},
               "codex": {"program": codex, "home": home},
               "acp": {"program": shutil.which("node"), "args": [acp], "can_resume": True}}[agent]
        if agent == "acp":
            env["CLAUDE_CONFIG_DIR"] = home
        return {"entry": agent, "env": env, **how, **more}
