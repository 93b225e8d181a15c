// SPDX-License-Identifier: GPL-3.0-or-later
//
// A job type for Flamenco 3: bakes IK chains on a farm, each shot as a task of its own.
// Copy this file into the folder `scripts` beside the Flamenco Manager. It has not been tried on a farm yet.
// See "On a farm" in docs/command_line.md.

const JOB_TYPE = {
    label: "Bake IK Chains",
    description: "Bake the IK chains of one or more files to keyframes",
    settings: [
        { key: "shots", type: "string", subtype: "file_path", required: false, visible: "submission",
          description: "Files to bake, as workers see them, separated by semicolons. Empty: the submitted file" },
        { key: "output", type: "string", subtype: "dir_path", required: true,
          description: "Folder for the baked files and their reports, as workers see it" },
        { key: "options", type: "string", required: false, visible: "submission",
          description: "More options of ik_bake, separated by spaces, such as --plant" },

        // Known without asking:
        { key: "blendfile", type: "string", required: true, visible: "web", description: "The submitted file" },
    ],
};

function compileJob(job) {
    const settings = job.settings;
    const shots = words(settings.shots, ";");
    const files = shots.length ? shots : [settings.blendfile];
    const names = files.map(nameOf);
    for (const name of names) {
        if (names.indexOf(name) !== names.lastIndexOf(name)) {
            throw `Two of the shots are called "${name}". Bake them into different folders`;
        }
    }
    const folder = author.Task("folder", "file-management");
    folder.addCommand(author.Command("make-directory", { path: settings.output }));
    job.addTask(folder);
    files.forEach((file, i) => {
        const task = baking(settings, file, names[i]);
        task.addDependency(folder);
        job.addTask(task);
    });
}

function baking(settings, file, name) {
    const stem = path.join(settings.output, name);
    const results = ["--output", `${stem}.blend`, "--report", `${stem}.json`];
    const task = author.Task(`bake ${name}`, "blender");
    task.addCommand(author.Command("blender-render", {
        exe: "{blender}",
        exeArgs: "{blenderArgs}",
        argsBefore: [],
        blendfile: file,
        args: ["--command", "ik_bake", ...words(settings.options, " "), ...results],
    }));
    return task;
}

// The name of a file without its folder and its ending; the Manager keeps copies of submitted files as NAME.flamenco.blend.
function nameOf(file) {
    return path.stem(file).replace(".flamenco", "");
}

function words(text, between) {
    return (text || "").split(between).map((word) => word.trim()).filter((word) => word);
}
