import pytest
from tests.window.driving import Window
@pytest.mark.parametrize("sample,bone", [("finger_limits", None), ("character","shin.L")])
@pytest.mark.parametrize("lang", ["en_US","de_DE"])
def test_narrow(window: Window, sample, bone, lang) -> None:
    bone = bone or "TIP"
    window.inside.open_file(f"/work/wt-16/sample_blends/{sample}.blend")
    if bone=="TIP":
        bone = window.session.call("import bpy\nob=bpy.context.object\nresult=[b.name for b in ob.pose.bones if b.ik_addon.is_chain][0]")
    window.inside.activate(bone); window.show_tab()
    window.session.call(f"import bpy\nbpy.context.preferences.view.language='{lang}'\nbpy.context.preferences.view.use_translate_interface=True")
    window.rest(1)
    r = window.session.call("result = rects()['UI']")
    window.pull((r["x"]-1, r["y"] + r["h"] // 2), r["w"]-180, 0); window.release(); window.rest(0.5)
    r = window.session.call("result = rects()['UI']"); print("WIDTH", r)
    crop=f"{r['w']+10}x{r['h']}+{r['x']-5}+{r['y']}"
    for p in ("limits","tools","body","clip","accuracy"):
        n=f"VIEW3D_PT_ik_addon_{p}"
        try: window.inside.open_panel(n)
        except Exception as e: print("NO", p)
    window.rest(1)
    for i in range(8):
        window.move(*window.middle())
        window.shot(f"s{i}", crop)
        window.move(r["x"]+60, r["y"]+r["h"]-60)
        window.session.x("click","--repeat",10,5); window.rest(0.5)
    window.session.x("click","--repeat",90,4); window.rest(0.5)
    window.session.call("import bpy\nfrom inside import viewport\nwith bpy.context.temp_override(**viewport()):\n    bpy.ops.ik_addon.bake('EXEC_DEFAULT')"); window.rest(2)
    window.move(*window.middle()); window.shot("bake", crop)
    window.session.call("import bpy\nbpy.context.preferences.view.language='en_US'")
